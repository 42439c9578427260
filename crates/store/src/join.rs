//! From the pieces that have arrived to those of the stored content: fewer, and not in too many
//! spans.

use crate::content::{BLOCK_BYTES, Piece};
use std::sync::Arc;

/// Spans of a stored response's content that is not whole; the longest are kept. It bounds the
/// fragments that requests for single bytes can make; players and viewers of documents make a
/// dozen.
pub const STORED_SPANS_MAX: usize = 64;

/// Copies neighbours in memory together as long as they fit one block: of two that are left the
/// second would not have. `pieces` are in order and do not overlap.
pub(crate) fn join(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut joined: Vec<Piece> = Vec::with_capacity(pieces.len());
    let mut group: Vec<Piece> = Vec::new();
    let mut group_bytes = 0;
    for piece in pieces {
        let Some(block) = piece.block() else {
            joined.extend(copied_together(&mut group));
            group_bytes = 0;
            joined.push(piece);
            continue;
        };
        let follows = group.last().is_none_or(|last| last.to() == piece.from);
        if !follows || group_bytes + block.len() > BLOCK_BYTES {
            joined.extend(copied_together(&mut group));
            group_bytes = 0;
        }
        group_bytes += block.len();
        group.push(piece);
    }
    joined.extend(copied_together(&mut group));
    joined
}

fn copied_together(group: &mut Vec<Piece>) -> Option<Piece> {
    if group.len() < 2 {
        return group.pop();
    }
    let from = group.first()?.from;
    let blocks = group.iter().filter_map(Piece::block);
    let blocks: Vec<&[u8]> = blocks.map(|block| &**block).collect();
    let block = Arc::from(blocks.concat());
    group.clear();
    Some(Piece::in_memory(from, block))
}

/// The pieces of the longest [`STORED_SPANS_MAX`] spans, in order; `None` if there are no more
/// spans.
pub(crate) fn longest_spans(pieces: &[Piece]) -> Option<Vec<Piece>> {
    let mut spans: Vec<&[Piece]> = pieces
        .chunk_by(|piece, next| piece.to() == next.from)
        .collect();
    if spans.len() <= STORED_SPANS_MAX {
        return None;
    }
    let length = |span: &&[Piece]| span.iter().map(Piece::len).sum::<u64>();
    spans.sort_by_key(|span| std::cmp::Reverse(length(span)));
    spans.truncate(STORED_SPANS_MAX);
    let mut kept: Vec<Piece> = spans.concat();
    kept.sort_unstable_by_key(|piece| piece.from);
    Some(kept)
}
