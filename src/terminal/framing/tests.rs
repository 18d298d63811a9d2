use proptest::prelude::*;

use super::*;

/// A frame as any client may send it.
fn frame() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let kinds = prop_oneof![4 => 0_u8..13, 1 => any::<u8>()];
    (kinds, prop::collection::vec(any::<u8>(), 0..40))
}

fn encode(frames: &[(u8, Vec<u8>)]) -> Vec<u8> {
    frames
        .iter()
        .flat_map(|(kind, payload)| [&header(*kind, payload.len()), &payload[..]].concat())
        .collect()
}

/// What was understood, with what was typed joined.
#[derive(Debug, Default, PartialEq, Eq)]
struct Understood {
    typed: Vec<u8>,
    others: Vec<(usize, Request<'static>)>,
}

impl Understood {
    fn of<'a>(
        decoder: &mut Decoder,
        pieces: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Self, TooLong> {
        let mut this = Self::default();
        for mut piece in pieces {
            while let Some(request) = decoder.next(&mut piece)? {
                this.note(request);
            }
            assert!(piece.is_empty(), "all of a piece is used up");
            assert!(decoder.kept.capacity() <= 64 && decoder.kept.len() <= Decoder::KEPT);
        }
        Ok(this)
    }

    fn note(&mut self, request: Request<'_>) {
        let at = self.typed.len();
        self.others.push((
            at,
            match request {
                Request::Data(piece) => {
                    assert!(!piece.is_empty());
                    return self.typed.extend(piece);
                }
                Request::Attach(wish) => Request::Attach(wish),
                Request::Detach => Request::Detach,
                Request::Resize(wish) => Request::Resize(wish),
                Request::Peek(peek) => Request::Peek(peek),
                Request::Status => Request::Status,
                Request::ResetInputModes => Request::ResetInputModes,
            },
        ));
    }

    /// The same, read off the frames themselves.
    fn expected(frames: &[(u8, Vec<u8>)]) -> Self {
        let mut this = Self::default();
        for (kind, payload) in frames {
            let wish = (payload.len() >= 4).then(|| {
                let number = |at: usize| {
                    payload.get(at..at + 2).map_or(0, |b| u16::from(b[0]) << 8 | u16::from(b[1]))
                };
                Wish {
                    rows: number(0).clamp(1, 1000),
                    columns: number(2).clamp(1, 1000),
                    cell: (number(4), number(6)),
                }
            });
            let flags = payload.first().copied().unwrap_or(0);
            let request = match kind {
                0 => {
                    this.typed.extend(payload);
                    continue;
                }
                1 => Request::Attach(wish),
                2 => Request::Detach,
                3 => Request::Resize(wish),
                6 => Request::Peek(Peek { plain: flags % 2 == 1, retained: flags / 2 % 2 == 1 }),
                7 => Request::Status,
                11 => Request::ResetInputModes,
                _ => continue,
            };
            this.note(request);
        }
        this
    }
}

/// Cuts bytes into pieces of these sizes, over and over.
fn pieces<'a>(mut bytes: &'a [u8], sizes: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut sizes = sizes.iter().copied().cycle();
    std::iter::from_fn(move || {
        let (piece, rest) = bytes.split_at(bytes.len().min(sizes.next().unwrap_or(1)));
        bytes = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

proptest! {
    #[test]
    fn frames_are_understood_in_whatever_pieces_they_arrive(
        frames in prop::collection::vec(frame(), 0..20), sizes in prop::collection::vec(1_usize..30, 1..20),
    ) {
        let bytes = encode(&frames);
        let understood = Understood::of(&mut Decoder::default(), pieces(&bytes, &sizes));
        prop_assert_eq!(understood, Ok(Understood::expected(&frames)));
    }

    #[test]
    fn nothing_after_a_frame_that_is_too_long_is_understood(
        frames in prop::collection::vec(frame(), 0..5), kind in any::<u8>(),
        length in (32_u32 << 20) + 1.., sizes in prop::collection::vec(1_usize..30, 1..20),
    ) {
        let mut bytes = encode(&frames);
        bytes.push(kind);
        bytes.extend(length.to_be_bytes());
        bytes.extend(encode(&[(7, Vec::new())]));
        let mut decoder = Decoder::default();
        prop_assert_eq!(Understood::of(&mut decoder, pieces(&bytes, &sizes)), Err(TooLong(length)));
        prop_assert_eq!(decoder.next(&mut &[7, 0, 0, 0, 0][..]), Err(TooLong(length)));
    }

    #[test]
    fn random_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = Understood::of(&mut Decoder::default(), pieces(&bytes, &[7]));
    }
}

#[test]
fn a_frame_of_the_longest_payload_costs_no_memory() {
    let mut decoder = Decoder::default();
    let zeros = vec![0; 1 << 20];
    for kind in [0, 1, 99] {
        let start = header(kind, 32 << 20);
        let all = std::iter::once(&start[..]).chain(std::iter::repeat_n(&zeros[..], 32));
        let understood =
            all.map(|piece| Understood::of(&mut decoder, std::iter::once(piece)).unwrap());
        let typed: usize = understood.map(|understood| understood.typed.len()).sum();
        assert_eq!(typed, if kind == 0 { 32 << 20 } else { 0 });
    }
}

#[test]
fn a_size_is_clamped_and_may_be_absent() {
    let wish = |payload: &[u8]| {
        let bytes = encode(&[(3, payload.to_vec())]);
        let understood =
            Understood::of(&mut Decoder::default(), std::iter::once(&bytes[..])).unwrap();
        match understood.others[..] {
            [(0, Request::Resize(wish))] => wish,
            _ => panic!("{understood:?}"),
        }
    };
    assert_eq!(wish(b""), None);
    assert_eq!(wish(&[0, 24, 0]), None);
    assert_eq!(wish(&[0, 24, 0, 80]), Some(Wish { rows: 24, columns: 80, cell: (0, 0) }));
    assert_eq!(wish(&[0, 0, 255, 255, 0, 9]), Some(Wish { rows: 1, columns: 1000, cell: (9, 0) }));
    let identified = [&[0, 30, 0, 100, 0, 8, 0, 16][..], b"{\"pid\":12,\"tty\":null}"].concat();
    assert_eq!(wish(&identified), Some(Wish { rows: 30, columns: 100, cell: (8, 16) }));
}

#[test]
fn frames_to_a_client_are_those_of_the_protocol() {
    assert_eq!(data_header(0x0102_0304), [0, 1, 2, 3, 4]);
    assert_eq!(screen(b"ab"), b"\x05\0\0\0\x02ab");
    assert_eq!(status("{}"), b"\x07\0\0\0\x02{}");
    assert_eq!(geometry(Size::new(80, 24)), b"\x0a\0\0\0\x04\0\x18\0\x50");
    assert_eq!(exit(-1), b"\x04\0\0\0\x04\xff\xff\xff\xff");
    assert_eq!(exit(137), b"\x04\0\0\0\x04\0\0\0\x89");
    assert_eq!(too_slow(), b"\x0c\0\0\0\x01\0");
}
