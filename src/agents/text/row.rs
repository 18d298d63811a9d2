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
        let step = cursor - self.begin;
        match self.has_few_bytes() {
            true => self.places_by_byte().nth(index(step)),
            false => places(&self.text).nth(index(step)),
        }
        .unwrap_or(self.text.len())
    }

    /// The longest piece of the text from `from` on of at most `bytes`: where it ends in the text, and the cursor at which to go
    /// on. Nothing, where not even the smallest fits: `from` itself.
    pub(super) fn cut(&self, from: usize, bytes: usize) -> (usize, u64) {
        if self.text.len() - from <= bytes {
            return (self.text.len(), self.end);
        }
        let cut = match self.has_few_bytes() {
            true => last_within(self.places_by_byte(), from, from + bytes),
            false => last_within(places(&self.text), from, from + bytes),
        };
        cut.map_or((from, self.begin), |(step, at)| (at, self.begin + step))
    }

    /// Each unit has a byte of its own, if there are as many. If not (blanks that the cursor was moved past, a character
    /// repeated), each byte has as much of the text as any other.
    fn has_few_bytes(&self) -> bool {
        length(&self.text) > self.end - self.begin
    }

    /// Where in the text that of each byte of output begins.
    fn places_by_byte(&self) -> impl Iterator<Item = usize> + '_ {
        let bytes = self.end - self.begin;
        let mut places = places(&self.text).peekable();
        let mut place = 0;
        (0..bytes).map(move |byte| {
            let most = share(self.text.len() as u64, byte, bytes);
            while let Some(next) = places.next_if(|&next| next as u64 <= most) {
                place = next;
            }
            place
        })
    }
}

/// The last of some places that lies between two, the first included, and which of them it is.
fn last_within(
    places: impl Iterator<Item = usize>,
    from: usize,
    to: usize,
) -> Option<(u64, usize)> {
    (0..).zip(places).take_while(|(_, at)| *at <= to).filter(|(_, at)| *at >= from).last()
}

/// `whole × part ÷ parts`, rounded down: `part` is at most `parts`, so the result fits. Nothing of no parts.
pub(super) fn share(whole: u64, part: u64, parts: u64) -> u64 {
    let product = u128::from(whole) * u128::from(part);
    u64::try_from(product.checked_div(u128::from(parts)).unwrap_or(0)).unwrap_or(whole)
}

fn index(step: u64) -> usize {
    usize::try_from(step).unwrap_or(usize::MAX)
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
