//! Code that relies on how tonic, h2 and prost work inside, to save a copy or a write.
//!
//! Every assumption has a test in its file, which fails if a new version of the library breaks it.
//!
//! | file | saves | assumption |
//! |---|---|---|
//! | `single_write.rs` | one packet and one wake-up of the caller for each short response | h2 writes a message together with the frames before it, flushes, and then writes and flushes the trailers |
//! | `segments.rs` | a copy of each long resource list, and a frame for each request | a body that replaces tonic's own in a layer reaches the connection unchanged; fields are encoded as prost encodes them |
//! | `decoder_error.rs` | nothing: it explains tonic's refusal of a request over the size limit | the codes and texts of tonic's decoder |
//! | `status_size.rs` | nothing: it keeps a status within the header size that clients accept | tonic sends a status in the headers that `Status::add_header` adds |

mod decoder_error;
mod segments;
mod single_write;
pub(crate) mod status_size;

pub use decoder_error::explain_size_limit;
pub use segments::{SegmentedChannel, SegmentedMessage};
pub use single_write::SingleWrite;

/// Returns the number of bytes that a field of this length takes in a message with few fields: key,
/// length and content. An empty field is left out.
#[must_use]
pub fn field_length(length: usize) -> usize {
    match length {
        0 => 0,
        _ => prost::encoding::key_len(1) + prost::length_delimiter_len(length) + length,
    }
}
