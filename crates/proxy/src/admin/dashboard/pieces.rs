//! A large answer in pieces, which has a place until its client has read it.

use axum::body::{Body, Bytes};
use futures_core::Stream;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::OwnedSemaphorePermit;

/// Bytes of a piece: the next one is given when the connection has room for it.
const PIECE_BYTES: usize = 64 << 10;

/// What is still to be sent.
struct Pieces {
    rest: Bytes,
    _place: OwnedSemaphorePermit,
}

impl Stream for Pieces {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let bytes = self.rest.len().min(PIECE_BYTES);
        let piece = self.rest.split_to(bytes);
        Poll::Ready((!piece.is_empty()).then_some(Ok(piece)))
    }
}

/// The content of an answer that holds `place` until it is sent, or its client has gone.
pub(super) fn in_pieces(text: String, place: OwnedSemaphorePermit) -> Body {
    Body::from_stream(Pieces {
        rest: text.into(),
        _place: place,
    })
}
