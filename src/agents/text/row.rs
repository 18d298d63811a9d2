//! A piece of text, and the bytes of output that it was made of.

/// What stands for a secret.
pub const REDACTED: &str = "[redacted]";

/// Text that does not change any more: a line with its line feed, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The offset of the first byte that it was made of.
    pub(super) begin: u64,
    /// The offset after the last.
    pub(super) end: u64,
    pub(super) text: String,
}

impl Row {
    /// Whether a line ends with it.
    pub(super) fn ends_line(&self) -> bool {
        self.text.ends_with('\n')
    }

    /// Where in the text a reader goes on that has what was made of the bytes before `cursor`.
    pub(super) fn text_from(&self, cursor: u64) -> usize {
        if cursor <= self.begin {
            return 0;
        }
        if cursor >= self.end {
            return self.text.len();
        }
        let step = self.steps().at(cursor - self.begin);
        usize::try_from(step)
            .ok()
            .and_then(|step| places(&self.text).nth(step))
            .unwrap_or(self.text.len())
    }

    /// The longest piece of the text from `from` on of at most `bytes`: where it ends in the text, and the cursor at which to go
    /// on. Nothing, where not even the smallest fits: `from` itself.
    pub(super) fn cut(&self, from: usize, bytes: usize) -> (usize, u64) {
        if self.text.len() - from <= bytes {
            return (self.text.len(), self.end);
        }
        let steps = self.steps();
        let fitting = (0..).zip(places(&self.text)).take_while(|(_, at)| *at <= from + bytes);
        let places =
            fitting.filter_map(|(step, at)| Some((at, self.begin + steps.offset_of(step)?)));
        places.filter(|(at, _)| *at >= from).last().unwrap_or((from, self.begin))
    }

    fn steps(&self) -> Steps {
        Steps { units: length(&self.text), bytes: self.end - self.begin }
    }
}

/// Which units of a text lie before which bytes of output. Each unit has a byte of its own, as there are more bytes than units;
/// if not (blanks that the cursor was moved past, a character repeated), then each byte has a unit of its own.
struct Steps {
    units: u64,
    bytes: u64,
}

impl Steps {
    /// The unit at a byte.
    fn at(&self, offset: u64) -> u64 {
        if self.units <= self.bytes {
            return offset.min(self.units);
        }
        scaled(offset, self.units, self.bytes)
    }

    /// The first byte at a unit, if it has one.
    fn offset_of(&self, unit: u64) -> Option<u64> {
        if self.units <= self.bytes {
            return Some(unit);
        }
        let offset = scaled(unit, self.bytes, self.units);
        [offset, offset + 1]
            .into_iter()
            .find(|&offset| offset < self.bytes && self.at(offset) == unit)
    }
}

/// `value × numerator ÷ denominator`, rounded down: `value` is below the denominator, so the result fits.
fn scaled(value: u64, numerator: u64, denominator: u64) -> u64 {
    u64::try_from(u128::from(value) * u128::from(numerator) / u128::from(denominator))
        .unwrap_or(numerator)
}

/// How many units a text has.
pub(super) fn length(text: &str) -> u64 {
    places(text).count() as u64
}

/// Where in a text each piece begins that is never cut: a character, or [`REDACTED`].
pub(super) fn places(text: &str) -> impl Iterator<Item = usize> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (begin, rest) = (at, &text[at..]);
        let redacted = rest.starts_with(REDACTED);
        at += if redacted { REDACTED.len() } else { rest.chars().next()?.len_utf8() };
        Some(begin)
    })
}
