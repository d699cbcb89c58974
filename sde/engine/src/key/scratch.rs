//! A buffer per thread, so that keying a small input allocates nothing.

use std::cell::Cell;

use super::digest::{Digest, Key};
use super::encoder::Encoder;

/// A buffer that grew beyond this is given back to the allocator.
const KEEP: usize = 256 * 1024;

/// Boxed, so that it is lent and given back by moving one word.
#[allow(clippy::box_collection, reason = "a vector is three words")]
type Kept = Option<Box<Vec<u8>>>;

thread_local! {
    static BUFFER: Cell<Kept> = const { Cell::new(None) };
}

/// Gives the buffer back also when the closure panics.
struct Lent(Kept);

impl Drop for Lent {
    #[inline]
    fn drop(&mut self) {
        if let Some(buffer) = self.0.take_if(|buffer| buffer.capacity() <= KEEP) {
            // While the thread ends there is no place for it: it is dropped.
            let _ = BUFFER.try_with(|slot| slot.set(Some(buffer)));
        }
    }
}

/// Runs `write` with an encoder over a buffer that this thread keeps for the purpose.
///
/// It may be called again from within: the inner call gets a buffer of its own. A first call in a
/// thread allocates the buffer, later ones nothing.
///
/// ```
/// use sde::key::{keyed, with_encoder, Digest};
/// let app = Digest::from_bytes([1; 32]);
/// let key = with_encoder(|to| {
///     to.named("angle", &104.5_f64)?;
///     to.named("basis", "6-31G*")?;
///     Ok::<_, sde::key::FingerprintError>(keyed(&app, to.finish()?))
/// })?;
/// # Ok::<(), sde::key::FingerprintError>(())
/// ```
#[inline]
pub fn with_encoder<R>(write: impl FnOnce(&mut Encoder<'_>) -> R) -> R {
    let mut lent = Lent(BUFFER.try_with(Cell::take).unwrap_or_default());
    write(&mut Encoder::new(lent.0.get_or_insert_default()))
}

/// The key of a run: BLAKE3 of the encoded inputs, keyed by the digest that identifies the app.
///
/// `inputs` are the bytes that [`Encoder::finish`] gave. The format version enters through the
/// app's digest, which [`Encoder::digest`] makes.
#[inline]
#[must_use]
pub fn keyed(app: &Digest, inputs: &[u8]) -> Key {
    Key::from_bytes(*blake3::keyed_hash(app.as_bytes(), inputs).as_bytes())
}
