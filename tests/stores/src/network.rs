//! The network between a gateway and its servers, which can be cut. If it is cut silently, bytes in transit arrive once it is
//! restored, as with TCP.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split};
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

/// Where a connection dies that carries a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// The statement doesn't arrive.
    Before,
    /// The server carries it out, and its answer doesn't arrive.
    After,
}

/// See the module. Its servers are reachable until it is dropped.
#[derive(Debug)]
pub struct Network {
    /// The folder of the sockets that lead to databases.
    folder: TempDir,
    way: watch::Sender<Way>,
    deaths: Arc<Deaths>,
}

/// Counts what clients send, and kills one connection.
#[derive(Debug)]
struct Deaths {
    before: AtomicI64,
    after: AtomicI64,
}

impl Deaths {
    /// Whether this connection dies now.
    fn is_due(left: &AtomicI64) -> bool {
        left.load(Ordering::Relaxed) > 0 && left.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

impl Network {
    /// A network that is open.
    ///
    /// # Panics
    /// There is no place for its sockets.
    #[expect(clippy::new_without_default, reason = "it makes a folder")]
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("gw-net-").tempdir_in("/tmp").expect("a folder");
        let deaths = Arc::new(Deaths { before: AtomicI64::new(0), after: AtomicI64::new(0) });
        Self { folder, way: watch::Sender::new(Way::Open), deaths }
    }

    /// Kills the connection that carries a statement. `statement`: its number, counted from now over all clients; what a client
    /// sends at once counts as one. 0: none.
    pub fn kill_at(&self, death: Death, statement: u32) {
        let [before, after] = match death {
            Death::Before => [statement, 0],
            Death::After => [0, statement],
        };
        self.deaths.before.store(before.into(), Ordering::Relaxed);
        self.deaths.after.store(after.into(), Ordering::Relaxed);
    }

    /// Whether the connection has died that was to die.
    pub fn has_killed(&self) -> bool {
        [&self.deaths.before, &self.deaths.after].iter().all(|left| left.load(Ordering::Relaxed) <= 0)
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
        let deaths = Arc::clone(&self.deaths);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let place = place.clone();
                let server = async move { UnixStream::connect(place).await };
                tokio::spawn(lead(client, server, way.clone(), Arc::clone(&deaths)));
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
        let (way, deaths) = (self.way.subscribe(), Arc::clone(&self.deaths));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
                tokio::spawn(lead(client, server, way.clone(), Arc::clone(&deaths)));
            }
        });
        address.port()
    }
}

/// Forwards one connection to a server.
async fn lead<S>(
    client: S,
    server: impl Future<Output = io::Result<S>>,
    mut way: watch::Receiver<Way>,
    deaths: Arc<Deaths>,
) where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    if !is_open(&mut way).await {
        return;
    }
    let Ok(server) = server.await else { return };
    let (from_client, to_client) = split(client);
    let (from_server, to_server) = split(server);
    let (dying, dead) = watch::channel(false);
    tokio::spawn(pass(from_client, to_server, way.clone(), Some((deaths, dying))));
    tokio::spawn(async move {
        let mut from_server = from_server;
        pass_until(dead, pass(&mut from_server, to_client, way, None)).await;
        // A server carries out what it has got.
        while matches!(from_server.read(&mut [0; 1024]).await, Ok(1..)) {}
    });
}

/// Forwards answers until the connection dies.
async fn pass_until(mut dead: watch::Receiver<bool>, passing: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        Ok(_) = dead.wait_for(|is_dead| *is_dead) => {}
        () = passing => {}
    }
}

/// Forwards what one side sends until its data end or the connection breaks, and ends what the other side gets: a server
/// would keep the connection otherwise. `kills`: counts it, and tells when it kills the connection.
async fn pass(
    from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    way: watch::Receiver<Way>,
    kills: Option<(Arc<Deaths>, watch::Sender<bool>)>,
) {
    forward(from, &mut to, way, kills).await;
    _ = to.shutdown().await;
}

async fn forward(
    mut from: impl AsyncRead + Unpin,
    to: &mut (impl AsyncWrite + Unpin),
    mut way: watch::Receiver<Way>,
    kills: Option<(Arc<Deaths>, watch::Sender<bool>)>,
) {
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
        if let Some((deaths, dying)) = kills.as_ref().filter(|_| count > 0) {
            let is_late = Deaths::is_due(&deaths.after);
            if is_late || Deaths::is_due(&deaths.before) {
                dying.send_replace(true);
                if is_late {
                    _ = to.write_all(&bytes[..count]).await;
                }
                return;
            }
        }
        if count == 0 || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}

/// Waits while nothing gets through. False: the network is broken, or gone.
async fn is_open(way: &mut watch::Receiver<Way>) -> bool {
    way.wait_for(|way| *way != Way::Silent).await.is_ok_and(|way| *way == Way::Open)
}
