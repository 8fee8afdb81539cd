//! A connection over any transport.

use tokio::io::{AsyncRead, AsyncWrite};

pub(super) trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}
