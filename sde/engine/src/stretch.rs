//! Stretches of work, for `tracing`.

use std::time::Instant;

use tracing::Span;
use tracing::span::EnteredSpan;

/// A span with the fields `outcome` and `took`, which are told at its end. Costs one look where nobody listens.
#[derive(Debug)]
pub struct Stretch {
    span: EnteredSpan,
    /// `None` where nobody listens.
    begun: Option<Instant>,
}

impl Stretch {
    /// Enters the span; see [`stretch!`](crate::stretch).
    #[must_use]
    pub fn begin(span: Span) -> Self {
        Self {
            begun: (!span.is_disabled()).then(Instant::now),
            span: span.entered(),
        }
    }

    /// Ends the stretch. One that is dropped before, by `?` for example, has failed.
    pub fn end(mut self, outcome: &str) {
        self.tell(outcome);
    }

    fn tell(&mut self, outcome: &str) {
        if let Some(begun) = self.begun.take() {
            self.span.record("outcome", outcome);
            self.span
                .record("took", tracing::field::debug(begun.elapsed()));
        }
    }
}

impl Drop for Stretch {
    fn drop(&mut self) {
        self.tell("failed");
    }
}

/// Begins a [`Stretch`]: its name, then fields as for `tracing::debug_span!`.
#[doc(hidden)]
#[macro_export]
macro_rules! stretch {
    ($name:literal $(, $($fields:tt)+)?) => {
        $crate::__private::Stretch::begin($crate::__private::tracing::debug_span!(
            target: "sde",
            $name,
            $($($fields)+,)?
            outcome = $crate::__private::tracing::field::Empty,
            took = $crate::__private::tracing::field::Empty,
        ))
    };
}
