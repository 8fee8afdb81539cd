//! An upstream that answers immediately, without a key. Prints the port that it listens on.

#![expect(clippy::print_stdout, reason = "its port is its output")]

use std::io::Write as _;
use std::time::Duration;

use anyhow::Result;
use gatewright_bench::answers::RequestedAnswer;
use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Packet size of a stream that is not paced.
const PACKET: usize = 16 * 1024;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    std::io::stdout().flush()?;
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        // A client that disconnects ends only its own connection.
        tokio::spawn(async move { drop(serve(socket).await) });
    }
}

async fn serve(mut socket: TcpStream) -> Result<()> {
    let mut received = Vec::with_capacity(16 * 1024);
    loop {
        let head = loop {
            if let Some(end) = memmem::find(&received, b"\r\n\r\n") {
                break end + 4;
            }
            if socket.read_buf(&mut received).await? == 0 {
                return Ok(());
            }
        };
        let text = String::from_utf8_lossy(&received[..head]);
        let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
        let length = text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
        });
        let end = head + length.unwrap_or(0);
        while received.len() < end {
            if socket.read_buf(&mut received).await? == 0 {
                return Ok(());
            }
        }
        let wanted = RequestedAnswer::read(&path, &received[head..end]);
        received.drain(..end);
        if wanted.stream {
            stream(&mut socket, &wanted).await?;
        } else {
            let document = wanted.document();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
            socket.write_all(format!("{head} {}\r\n\r\n{document}", document.len()).as_bytes()).await?;
        }
    }
}

async fn stream(socket: &mut TcpStream, wanted: &RequestedAnswer) -> Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    socket.write_all(head.as_bytes()).await?;
    let mut packet = wanted.opening().to_owned();
    for number in 0..wanted.chunks {
        if !wanted.pace.is_zero() {
            send(socket, &packet).await?;
            packet.clear();
            pause(wanted.pace).await?;
        }
        packet.push_str(&wanted.chunk(number));
        if packet.len() >= PACKET {
            send(socket, &packet).await?;
            packet.clear();
        }
    }
    packet.push_str(&wanted.closing());
    send(socket, &packet).await?;
    Ok(socket.write_all(b"0\r\n\r\n").await?)
}

/// The runtime's timer has millisecond resolution; shorter pauses use a thread.
async fn pause(time: Duration) -> Result<()> {
    if time < Duration::from_millis(1) {
        return Ok(tokio::task::spawn_blocking(move || std::thread::sleep(time)).await?);
    }
    tokio::time::sleep(time).await;
    Ok(())
}

async fn send(socket: &mut TcpStream, packet: &str) -> Result<()> {
    Ok(socket.write_all(format!("{:x}\r\n{packet}\r\n", packet.len()).as_bytes()).await?)
}
