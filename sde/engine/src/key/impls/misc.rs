//! Times, ranges, orderings, numbers that are not zero, markers, and digests themselves.

use std::cmp::Ordering;
use std::marker::PhantomData;
use std::num::NonZero;
use std::ops::{Range, RangeFrom, RangeInclusive, RangeTo, RangeToInclusive};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::key::shape::TypeShape;
use crate::key::tag::item;
use crate::key::{Digest, Encoder, Fingerprint, FingerprintError, Key, Short, TypeWriter};

macro_rules! plain_shape {
    ($tag:ident) => {
        fn shape(to: &mut TypeWriter<'_, '_>) {
            to.tag(item::$tag);
        }
    };
}

fn span(tag: u8, before: u8, length: Duration) -> [u8; 14] {
    let mut bytes = [0; 14];
    bytes[0] = tag;
    bytes[1] = before;
    bytes[2..10].copy_from_slice(&length.as_secs().to_le_bytes());
    bytes[10..].copy_from_slice(&length.subsec_nanos().to_le_bytes());
    bytes
}

impl Fingerprint for Duration {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.fixed(span(item::DURATION, 0, *self));
        Ok(())
    }

    fn describe(&self, out: &mut Short) {
        out.show(format_args!("{self:?}"));
    }

    plain_shape!(DURATION);
}

/// By its distance from the Unix epoch.
impl Fingerprint for SystemTime {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.fixed(match self.duration_since(UNIX_EPOCH) {
            Ok(after) => span(item::SYSTEM_TIME, 0, after),
            Err(before) => span(item::SYSTEM_TIME, 1, before.duration()),
        });
        Ok(())
    }

    fn describe(&self, out: &mut Short) {
        match self.duration_since(UNIX_EPOCH) {
            Ok(after) => out.show(format_args!("{} s after 1970", after.as_secs_f64())),
            Err(before) => out.show(format_args!(
                "{} s before 1970",
                before.duration().as_secs_f64()
            )),
        }
    }

    plain_shape!(SYSTEM_TIME);
}

impl Fingerprint for Ordering {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.fixed([item::ORDERING, (*self as i8).to_le_bytes()[0]]);
        Ok(())
    }

    fn describe(&self, out: &mut Short) {
        out.show(format_args!("{self:?}"));
    }

    plain_shape!(ORDERING);
}

macro_rules! non_zero {
    ($($type:ty),*) => {$(
        impl Fingerprint for NonZero<$type> {
            fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
                to.item(|parts| {
                    parts.bytes([item::NON_ZERO]);
                    parts.part(&self.get())
                })
            }

            fn describe(&self, out: &mut Short) {
                out.show(self);
            }

            fn shape(to: &mut TypeWriter<'_, '_>) {
                to.tag(item::NON_ZERO);
                <$type>::shape(to);
            }
        }
    )*};
}

non_zero!(
    u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize
);

/// The kind of range, then its bounds as a structure, and that it is used up, if it can be.
macro_rules! ranges {
    ($($kind:literal: $type:ident, $dots:literal, |$range:ident| $start:expr, $end:expr
        $(, used up if $used_up:expr, for $order:path)?;)*) => {$(
        impl<T: Fingerprint $(+ $order)?> Fingerprint for $type<T> {
            fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
                let $range = self;
                let bounds: [(&str, Option<&T>); 2] = [("start", $start), ("end", $end)];
                to.item(|fields| {
                    fields.bytes([item::RANGE, $kind]);
                    fields.until_end(|fields| {
                        let mut there = bounds.iter().filter_map(|(name, bound)| Some((name, (*bound)?)));
                        there.try_for_each(|(name, bound)| fields.field(name, bound))?;
                        $(if $used_up {
                            fields.field("used up", &true)?;
                        })?
                        Ok(())
                    })
                })
            }

            fn describe(&self, out: &mut Short) {
                let $range = self;
                $(if $used_up {
                    return out.show("used up");
                })?
                let (start, end): (Option<&T>, Option<&T>) = ($start, $end);
                out.list(start);
                out.show($dots);
                out.list(end);
            }

            fn shape(to: &mut TypeWriter<'_, '_>) {
                to.tag(item::RANGE);
                to.tag($kind);
                T::shape(to);
            }
        }
    )*};
}

ranges! {
    0: Range, "..", |range| Some(&range.start), Some(&range.end);
    1: RangeInclusive, "..=", |range| Some(range.start()), Some(range.end()),
        used up if range.start() <= range.end() && range.is_empty(), for PartialOrd;
    2: RangeFrom, "..", |range| Some(&range.start), None;
    3: RangeTo, "..", |range| None, Some(&range.end);
    4: RangeToInclusive, "..=", |range| None, Some(&range.end);
}

/// A marker holds no value, but it tells types apart: `Length<Metres>` and `Length<Feet>` differ.
impl<T: TypeShape + ?Sized> Fingerprint for PhantomData<T> {
    fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
        to.plain_item(|parts| {
            parts.bytes([item::PHANTOM]);
            parts.with_shape(T::type_shape);
        });
        Ok(())
    }

    fn describe(&self, out: &mut Short) {
        out.type_name::<T>();
    }

    fn shape(to: &mut TypeWriter<'_, '_>) {
        to.tag(item::PHANTOM);
        T::type_shape(to);
    }
}

macro_rules! digests {
    ($($type:ident, $tag:ident;)*) => {$(
        impl Fingerprint for $type {
            fn fingerprint(&self, to: &mut Encoder<'_>) -> Result<(), FingerprintError> {
                to.framed(item::$tag, self.as_bytes());
                Ok(())
            }

            fn describe(&self, out: &mut Short) {
                out.show(self.short());
            }

            plain_shape!($tag);
        }
    )*};
}

digests! {
    Digest, DIGEST;
    Key, KEY;
}
