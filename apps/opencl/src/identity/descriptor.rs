//! A program described for a device, with its key.

use std::path::PathBuf;
use std::sync::Arc;

use sde::Fingerprint;
use sde::key::{Digest, Encoder, FingerprintError, Short};

use super::Environment;
use super::environment::{BUILD_OPTIONS, LINK_OPTIONS, are_plain};
use super::full_key::{FORMAT, FullKey, Included, Material};
use super::options::Options;
use super::scan::Source;
use super::spec::{OptionText, ProgramSpec, What};
use crate::Error;
use crate::cacheable::NotCacheable;
use crate::driver::DeviceIdentity;

/// A program described for a device: read-only, and cheap to clone and to compare.
///
/// Made by [`Context::describe`](crate::Context::describe), which reads the files that the source
/// includes. Make it once and keep it. If such a file, or a switch of the driver, changes later, a remembered or
/// kept program is still found. A build then fails with [`Error::Changed`], until the program is described again.
#[derive(Clone)]
pub struct Descriptor(Arc<Inner>);

struct Inner {
    key: Digest,
    full: FullKey,
    name: String,
    made: Made,
    cacheable: Result<(), NotCacheable>,
}

/// How a program is made.
pub(crate) enum Made {
    /// By building the text or the module in the full key.
    Built,
    /// From parts, by linking.
    Linked(Vec<Descriptor>),
}

/// The inputs of a description beside the spec.
pub(crate) struct Describe<'a> {
    pub(crate) device: &'a DeviceIdentity,
    pub(crate) environment: &'a Environment,
    /// The options of the call.
    pub(crate) options: &'a str,
    /// Whether it is built already, so that the environment adds no options.
    pub(crate) is_built: bool,
    /// For tests: how many bits of the digest are used.
    pub(crate) bits: Option<usize>,
}

impl Describe<'_> {
    pub(crate) fn describe(&self, spec: &ProgramSpec) -> Result<Descriptor, Error> {
        let switches = self.environment.switches();
        let mut options = Options::default();
        for option in &spec.options {
            match option {
                OptionText::Text(text) => options.add(text)?,
                OptionText::Dir(dir) => options.add_dir(dir)?,
            }
        }
        options.add(self.options)?;
        let variable = match spec.what {
            What::Linked(_) => LINK_OPTIONS,
            _ => BUILD_OPTIONS,
        };
        if !self.is_built {
            let said = self.environment.value(variable);
            let added = options.add(&said);
            added.map_err(|error| of_environment(variable, error))?;
        }
        let (material, made, cacheable) = self.material(spec, &options)?;
        let known = options.cacheable().and_then(|()| are_plain(&switches));
        let cacheable = known.and(cacheable);
        let full = FullKey {
            format: FORMAT,
            material,
            options: options.text(),
            device: self.device.clone(),
            switches,
        };
        let key = full.key().map_err(unkeyed)?;
        let name = spec.name.clone();
        Ok(Descriptor(Arc::new(Inner {
            key: self.bits.map_or(key, |bits| cut_to(key, bits)),
            name: name.unwrap_or_else(|| format!("program {}", key.short())),
            full,
            made,
            cacheable,
        })))
    }

    fn material(
        &self,
        spec: &ProgramSpec,
        options: &Options,
    ) -> Result<(Material, Made, Result<(), NotCacheable>), Error> {
        let wrong = |what: &str, why: &str| Error::Options {
            options: what.to_owned(),
            why: why.to_owned(),
        };
        let is_source = matches!(spec.what, What::Source(_));
        if !(spec.constants.is_empty() || matches!(spec.what, What::Il(_))) {
            let why = "only an intermediate language has them; use `define`";
            return Err(wrong("specialization constants", why));
        }
        if let (Some(define), false) = (spec.defines.first(), is_source) {
            let why = "only a source has macros; give them to the parts of a linked program";
            return Err(wrong(define, why));
        }
        if spec.reads.is_some() && !is_source {
            let why = "only a source includes files; name them with the part that does";
            return Err(wrong("promised files", why));
        }
        match &spec.what {
            What::Source(text) => {
                let text = with_defines(&spec.defines, text)?;
                let before = self.environment.looked_in_before();
                let (included, cacheable) = scanned(spec, &text, options, &before)?;
                let material = Material::Source {
                    text,
                    included,
                    reads: spec.reads.clone(),
                };
                Ok((material, Made::Built, cacheable))
            }
            What::Il(bytes) => {
                let material = Material::Il {
                    bytes: bytes.to_vec(),
                    constants: spec.constants.clone(),
                };
                Ok((material, Made::Built, Ok(())))
            }
            What::Linked(parts) => self.parts(parts),
        }
    }

    fn parts(
        &self,
        parts: &[ProgramSpec],
    ) -> Result<(Material, Made, Result<(), NotCacheable>), Error> {
        let wrong = |why: &str| Error::Parts {
            why: why.to_owned(),
        };
        if parts.is_empty() {
            return Err(wrong("it has no parts"));
        }
        if parts
            .iter()
            .any(|part| matches!(part.what, What::Linked(_)))
        {
            return Err(wrong(
                "a part is linked itself; give its parts in its place",
            ));
        }
        // Options of the call go to the linker.
        let compiling = Describe {
            options: "",
            ..*self
        };
        let parts = parts.iter().map(|part| compiling.describe(part));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let cacheable = parts.iter().try_for_each(Descriptor::is_cacheable);
        let cacheable = cacheable.map_err(|why| NotCacheable::Part(Box::new(why.clone())));
        let keys = parts.iter().map(|part| part.0.full.clone());
        let material = Material::Linked {
            parts: keys.collect(),
        };
        Ok((material, Made::Linked(parts), cacheable))
    }
}

/// The files that a source may include, and whether a compiler reads no others.
fn scanned(
    spec: &ProgramSpec,
    text: &str,
    options: &Options,
    before: &[PathBuf],
) -> Result<(Vec<Included>, Result<(), NotCacheable>), Error> {
    let (dirs, name) = (options.include_dirs(), spec.name.as_deref());
    let scan = Source {
        text,
        name: name.unwrap_or("the source"),
        options: &options.text(),
        dirs: &dirs,
        before,
        reads: spec.reads.as_deref(),
    };
    let scan = scan.scan();
    let is_missing = |file: &&String| scan.included.iter().all(|one| one.name != **file);
    let mut promised = spec.reads.iter().flatten();
    match promised.find(is_missing) {
        None => Ok((scan.included, scan.cacheable)),
        Some(file) => Err(Error::NoInclude {
            name: file.clone(),
            looked_in: dirs,
        }),
    }
}

/// A source with its macros before its first line, which keeps its number.
fn with_defines(defines: &[String], text: &str) -> Result<String, Error> {
    if defines.is_empty() {
        return Ok(text.to_owned());
    }
    // A byte order mark is valid only at the very start.
    let (mark, text) = match text.strip_prefix('\u{feff}') {
        Some(text) => ("\u{feff}", text),
        None => ("", text),
    };
    let mut all = mark.to_owned();
    for define in defines {
        let goes_on = define.contains(['\n', '\r', '\0']) || define.trim_end().ends_with('\\');
        if goes_on || define.contains("/*") || define.contains("??/") {
            return Err(Error::Options {
                options: define.clone(),
                why: "a macro ends with its line, and has no comment; write it into the source"
                    .to_owned(),
            });
        }
        all += &format!("#define {define}\n");
    }
    Ok(all + "#line 1\n" + text)
}

/// A digest with all but its first bits set to 0, so that a test meets two programs of one digest.
fn cut_to(digest: Digest, bits: usize) -> Digest {
    let mut bytes = *digest.as_bytes();
    for (at, byte) in bytes.iter_mut().enumerate() {
        let kept = bits.saturating_sub(8 * at).min(8);
        *byte &= !(0xff_u16 >> kept) as u8;
    }
    Digest::from_bytes(bytes)
}

fn of_environment(variable: &str, error: Error) -> Error {
    match error {
        Error::Options { options, why } => Error::Options {
            options: format!("{variable}={options}"),
            why,
        },
        other => other,
    }
}

fn unkeyed(error: FingerprintError) -> Error {
    Error::Options {
        options: "the program".to_owned(),
        why: error.to_string(),
    }
}

impl Descriptor {
    /// The key of the program.
    #[must_use]
    pub fn key(&self) -> Digest {
        self.0.key
    }

    /// All that the key is made of.
    #[must_use]
    pub fn full_key(&self) -> &FullKey {
        &self.0.full
    }

    /// The name from the spec, or the short key.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether the binary may be kept.
    ///
    /// # Errors
    /// The reason, if it may not.
    pub fn is_cacheable(&self) -> Result<(), &NotCacheable> {
        self.0.cacheable.as_ref().copied()
    }

    /// The options as a driver takes them.
    #[must_use]
    pub fn options(&self) -> &str {
        &self.0.full.options
    }

    /// The bytes that stand for the program in a user's own store: oneDNN's cache blob id.
    #[must_use]
    pub fn blob_id(&self) -> [u8; 32] {
        *self.0.key.as_bytes()
    }

    pub(crate) fn made(&self) -> &Made {
        &self.0.made
    }

    /// The length of all text or bytes that a compiler reads.
    pub(crate) fn source_length(&self) -> usize {
        self.0.full.material.length()
    }

    /// Whether it is the same program, even if two digests collide.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.key == other.0.key && self.0.full == other.0.full)
    }
}

/// The key stands for the whole descriptor.
impl Fingerprint for Descriptor {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.structure("Descriptor", |fields| fields.field("key", &self.0.key))
    }

    fn describe(&self, out: &mut Short) {
        out.show(&self.0.name);
    }
}

impl std::fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Descriptor")
            .field("name", &self.0.name)
            .field("key", &self.0.key)
            .field("options", &self.0.full.options)
            .finish_non_exhaustive()
    }
}
