//! The messages between the two ends of a copy over `ssh`.
//!
//! Numbers are little-endian. Each end begins with [`HELLO`]. Then the sender lists what it would copy, the receiver
//! answers what it has, and the sender sends stores of what is missing, one after the other. Each message ends with the
//! BLAKE3 digest of all that this end has sent: nothing is used before the digest was right.

use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// The first line of each end.
const HELLO: &str = "SDE copy, version 1\n";

/// The beginning of the first line in all versions.
const ANY_HELLO: &str = "SDE copy, version ";

/// The longest text in a message. A file is no text.
const LONGEST: u64 = 1 << 20;

/// What is sent to the other end.
pub struct Sender<W: Write> {
    to: BufWriter<W>,
    sent: blake3::Hasher,
}

/// What comes from the other end.
pub struct Receiver<R: Read> {
    from: BufReader<R>,
    received: blake3::Hasher,
}

fn not_sent(error: &io::Error) -> Failure {
    Failure::told(match error.kind() {
        ErrorKind::BrokenPipe => "the other side ended before all was sent".to_owned(),
        _ => format!("sending failed: {error}"),
    })
}

fn not_received(error: &io::Error) -> Failure {
    Failure::told(match error.kind() {
        ErrorKind::UnexpectedEof => "the other side ended before all was received".to_owned(),
        _ => format!("receiving failed: {error}"),
    })
}

impl<W: Write> Sender<W> {
    /// Begins with the hello.
    pub fn begin(to: W) -> Result<Self, Failure> {
        let mut begun = Self {
            to: BufWriter::new(to),
            sent: blake3::Hasher::new(),
        };
        begun.bytes(HELLO.as_bytes())?;
        begun.flush()?;
        Ok(begun)
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.sent.update(bytes);
        self.to.write_all(bytes).map_err(|error| not_sent(&error))
    }

    pub fn number(&mut self, number: u64) -> Result<(), Failure> {
        self.bytes(&number.to_le_bytes())
    }

    pub fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.number(text.len() as u64)?;
        self.bytes(text.as_bytes())
    }

    pub fn object(&mut self, object: &impl Serialize) -> Result<(), Failure> {
        self.text(&serde_json::to_string(object)?)
    }

    /// Sends so many bytes of a file; `failed` is for errors of reading it.
    pub fn file(
        &mut self,
        length: u64,
        file: impl Read,
        failed: impl Fn(io::Error) -> Failure,
    ) -> Result<(), Failure> {
        self.number(length)?;
        let mut left = length;
        pieces(file.take(length), failed, |piece| {
            left -= piece.len() as u64;
            self.bytes(piece)
        })?;
        match left {
            0 => Ok(()),
            _ => Err(Failure::told("a file became shorter while it was sent")),
        }
    }

    /// Ends a message.
    pub fn end(&mut self) -> Result<(), Failure> {
        let digest = *self.sent.finalize().as_bytes();
        self.bytes(&digest)?;
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.to.flush().map_err(|error| not_sent(&error))
    }
}

impl<R: Read> Receiver<R> {
    /// Reads the hello. `other` is what a person calls the other side.
    pub fn begin(from: R, other: &str) -> Result<Self, Failure> {
        let mut begun = Self {
            from: BufReader::new(from),
            received: blake3::Hasher::new(),
        };
        let mut line = Vec::new();
        while !line.ends_with(b"\n") && line.len() < 80 {
            let mut byte = [0];
            match begun.from.read(&mut byte) {
                Ok(0) => break,
                Ok(_) => line.push(byte[0]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(not_received(&error)),
            }
        }
        begun.received.update(&line);
        let line = String::from_utf8_lossy(&line);
        match &*line {
            HELLO => Ok(begun),
            "" => Err(Failure::told(format!(
                "{other} did not begin the copy: what it said is above. Where that is of a command that it does not know, its sde is of another release"
            ))),
            line if line.starts_with(ANY_HELLO) => Err(Failure::told(format!(
                "{other} has an sde of another release, which copies otherwise ({}); use the same one on both sides",
                line.trim_end()
            ))),
            line => Err(Failure::told(format!(
                "{other} said {:?} in place of beginning the copy; its shell must print nothing when it starts",
                line.trim_end()
            ))),
        }
    }

    pub fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Failure> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    pub fn number(&mut self) -> Result<u64, Failure> {
        Ok(u64::from_le_bytes(self.bytes()?))
    }

    pub fn text(&mut self) -> Result<String, Failure> {
        let length = self.number()?;
        if length > LONGEST {
            return Err(changed());
        }
        let mut bytes = vec![0; length as usize];
        self.fill(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| changed())
    }

    pub fn object<T: DeserializeOwned>(&mut self) -> Result<T, Failure> {
        serde_json::from_str(&self.text()?).map_err(|_| changed())
    }

    /// Writes the bytes of a file to `to`; `failed` is for errors of that.
    pub fn file(
        &mut self,
        to: &mut impl Write,
        failed: impl Fn(io::Error) -> Failure,
    ) -> Result<(), Failure> {
        let mut left = self.number()?;
        let received = &mut self.received;
        let from = self.from.by_ref().take(left);
        pieces(
            from,
            |error| not_received(&error),
            |piece| {
                left -= piece.len() as u64;
                received.update(piece);
                to.write_all(piece).map_err(&failed)
            },
        )?;
        match left {
            0 => to.flush().map_err(failed),
            _ => Err(not_received(&ErrorKind::UnexpectedEof.into())),
        }
    }

    /// Ends a message: an error if it is not what was sent.
    pub fn end(&mut self) -> Result<(), Failure> {
        let expected = *self.received.finalize().as_bytes();
        match self.bytes::<32>()? == expected {
            true => Ok(()),
            false => Err(changed()),
        }
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Failure> {
        let read = self.from.read_exact(bytes);
        read.map_err(|error| not_received(&error))?;
        self.received.update(bytes);
        Ok(())
    }
}

fn changed() -> Failure {
    Failure::told("what arrived is not what was sent, and nothing of it was used; try again")
}

/// Gives the bytes of a reader piece by piece; `failed` is for errors of the reader.
fn pieces(
    mut from: impl Read,
    failed: impl Fn(io::Error) -> Failure,
    mut each: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut piece = vec![0; 1 << 16];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(length) => each(&piece[..length])?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
}
