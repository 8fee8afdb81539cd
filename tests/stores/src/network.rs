//! The network between a gateway and its servers, which can be cut. If it is cut silently, bytes in transit arrive once it is
//! restored, as with TCP.

use std::io;
use std::net::Ipv4Addr;

use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf, split};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;

use crate::Postgres;

/// The name of a Postgres server's socket in its folder.
const SOCKET: &str = ".s.PGSQL.5432";

/// What happens to bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// They arrive.
    Open,
    /// Nothing arrives, including the beginnings and ends of connections.
    Silent,
    /// Connections break, and new ones are refused.
    Broken,
}

/// See the module. Its servers are reachable until it is dropped.
#[derive(Debug)]
pub struct Network {
    /// The folder of the sockets that lead to databases.
    folder: TempDir,
    way: watch::Sender<Way>,
}

impl Network {
    /// A network that is open.
    ///
    /// # Panics
    /// There is no place for its sockets.
    #[expect(clippy::new_without_default, reason = "it makes a folder")]
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("gw-net-").tempdir_in("/tmp").expect("a folder");
        Self { folder, way: watch::Sender::new(Way::Open) }
    }

    /// Cuts or restores it.
    pub fn set(&self, way: Way) {
        self.way.send_replace(way);
    }

    /// The URL of a database behind it. Call it once per network. Needs a Tokio runtime.
    ///
    /// # Panics
    /// Its socket cannot be created.
    pub fn url_of(&self, server: &Postgres) -> String {
        let listener = UnixListener::bind(self.folder.path().join(SOCKET)).expect("a socket");
        let (way, place) = (self.way.subscribe(), server.folder().join(SOCKET));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let place = place.clone();
                tokio::spawn(lead(client, async move { UnixStream::connect(place).await }, way.clone()));
            }
        });
        Postgres::url_in(self.folder.path())
    }

    /// A port that leads to another port of this machine. Needs a Tokio runtime.
    ///
    /// # Panics
    /// There is no free port.
    pub async fn port_of(&self, port: u16) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let way = self.way.subscribe();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
                tokio::spawn(lead(client, server, way.clone()));
            }
        });
        address.port()
    }
}

/// Forwards one connection to a server.
async fn lead<S>(client: S, server: impl Future<Output = io::Result<S>>, mut way: watch::Receiver<Way>)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    if !is_open(&mut way).await {
        return;
    }
    let Ok(server) = server.await else { return };
    let (from_client, to_client) = split(client);
    let (from_server, to_server) = split(server);
    tokio::spawn(pass(from_client, to_server, way.clone()));
    tokio::spawn(pass(from_server, to_client, way));
}

/// Forwards what one side sends, and the end of its data.
async fn pass<S>(mut from: ReadHalf<S>, mut to: WriteHalf<S>, mut way: watch::Receiver<Way>)
where
    S: AsyncRead + AsyncWrite,
{
    let mut bytes = vec![0; 16 * 1024];
    let mut breaks = way.clone();
    loop {
        let count = tokio::select! {
            read = from.read(&mut bytes) => read.unwrap_or(0),
            _ = breaks.wait_for(|way| *way == Way::Broken) => return,
        };
        if !is_open(&mut way).await {
            return;
        }
        let passed = if count == 0 { to.shutdown().await } else { to.write_all(&bytes[..count]).await };
        if count == 0 || passed.is_err() {
            return;
        }
    }
}

/// Waits while nothing gets through. False: the network is broken, or gone.
async fn is_open(way: &mut watch::Receiver<Way>) -> bool {
    way.wait_for(|way| *way != Way::Silent).await.is_ok_and(|way| *way == Way::Open)
}
