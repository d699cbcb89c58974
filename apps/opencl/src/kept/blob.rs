//! Binaries as bytes that a user keeps: oneDNN's cache blobs.
//!
//! A program that has a database, an archive or a server of its own wants bytes and a name for them.
//! The name is [`Descriptor::blob_id`]; the bytes are made and read here. Bytes that come back are not trusted: the
//! name and the full key are compared with the descriptor, and the checksum with the content, before a driver sees
//! them.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `SDEBLOB2` |
//! | 32 | the blob id |
//! | 32 | the checksum of all that follows |
//! | as many as there are | the whole key, the binary, the log, the time of the build, the kernels and those of them that were launched, as `postcard` writes them |

use sde::key::commit;

use super::Kept;
use crate::identity::Descriptor;

const MAGIC: &[u8; 8] = b"SDEBLOB2";
const HEAD: usize = 8 + 32 + 32;

/// A kept binary with its facts, as bytes.
pub(crate) fn seal(descriptor: &Descriptor, kept: &Kept) -> Vec<u8> {
    // Serializing texts, numbers and bytes can't fail.
    let content = postcard::to_allocvec(kept).unwrap_or_default();
    let head: [&[u8]; 3] = [MAGIC, &descriptor.blob_id(), &checksum(&content)];
    [&head.concat()[..], &content].concat()
}

/// The content of a blob, or why it is no blob of this program.
pub(crate) fn parse(descriptor: &Descriptor, blob: &[u8]) -> Result<Kept, &'static str> {
    let head = blob.split_at_checked(HEAD);
    let Some((head, content)) = head.filter(|(head, _)| head.starts_with(MAGIC)) else {
        return Err("this version did not make it");
    };
    let (id, sum) = head[MAGIC.len()..].split_at(32);
    if id != descriptor.blob_id() {
        return Err("it is of another program, device or driver");
    }
    if sum != checksum(content) {
        return Err("its checksum is wrong");
    }
    match postcard::take_from_bytes::<Kept>(content) {
        Ok((kept, [])) => match kept.is_unfit(descriptor.full_key()) {
            None => Ok(kept),
            Some(why) => Err(why),
        },
        Ok(_) => Err("something follows its end"),
        Err(_) => Err("it holds something else"),
    }
}

fn checksum(content: &[u8]) -> [u8; 32] {
    // Hashing bytes can't fail.
    commit(content).map_or([0; 32], |made| *made.digest().as_bytes())
}
