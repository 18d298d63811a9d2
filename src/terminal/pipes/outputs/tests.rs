use proptest::prelude::*;

use super::*;

/// Everything ever written, in order: its source, its offset among the source's own, itself.
#[derive(Default)]
struct Model {
    all: Vec<(Source, u64, u8)>,
    ends: [u64; 2],
}

impl Model {
    fn append(&mut self, outputs: &mut Outputs, source: Source, count: usize) {
        let begin = self.all.len();
        let own = &mut self.ends[source.index()];
        for n in 0..count {
            self.all.push((source, *own, ((begin + n) % 251) as u8));
            *own += 1;
        }
        let bytes: Vec<u8> = self.all[begin..].iter().map(|(.., byte)| *byte).collect();
        outputs.append(source, &bytes);
    }

    fn of(&self, source: Source) -> Vec<u8> {
        let own = self.all.iter().filter(|(of, ..)| *of == source);
        own.map(|(.., byte)| *byte).collect()
    }
}

fn source(is_stderr: bool) -> Source {
    if is_stderr { Source::Stderr } else { Source::Output }
}

proptest! {
    #[test]
    fn what_is_read_in_order_is_all_that_is_kept_and_gaps_are_what_is_not(
        writes in prop::collection::vec((any::<bool>(), 0_usize..6_000), 0..40),
        sizes in prop::collection::vec(1_usize..5_000, 1..20),
    ) {
        let (mut outputs, mut model) = (Outputs::new(8192, &RingPool::default()), Model::default());
        for (is_stderr, count) in writes {
            model.append(&mut outputs, source(is_stderr), count);
        }
        let kept = Source::BOTH.map(|source| outputs.rings[source.index()].begin());
        let is_kept = |at: usize| {
            let (source, own, _) = model.all[at];
            own >= kept[source.index()]
        };
        let (mut cursor, mut sizes) = (0, sizes.into_iter().cycle());
        loop {
            let chunk = outputs.read(None, cursor, sizes.next().unwrap()).unwrap();
            let [from, begin, next] = [cursor, chunk.begin, chunk.next].map(|at| at as usize);
            prop_assert!((from..begin).all(|at| !is_kept(at)), "a gap is what is gone");
            prop_assert!((begin..next).all(is_kept));
            let expected: Vec<u8> = model.all[begin..next].iter().map(|(.., byte)| *byte).collect();
            prop_assert_eq!(chunk.bytes, expected);
            if chunk.next == cursor {
                break;
            }
            cursor = chunk.next;
        }
        prop_assert_eq!(cursor, model.all.len() as u64);
        prop_assert_eq!(outputs.dropped(), kept.iter().sum::<u64>());
    }

    #[test]
    fn each_output_alone_has_its_own_offsets(
        writes in prop::collection::vec((any::<bool>(), 0_usize..6_000), 0..40),
        at in 0_u64..40_000,
        max in 0_usize..9_000,
    ) {
        let (mut outputs, mut model) = (Outputs::new(8192, &RingPool::default()), Model::default());
        for (is_stderr, count) in writes {
            model.append(&mut outputs, source(is_stderr), count);
        }
        for source in Source::BOTH {
            let all = model.of(source);
            let end = all.len() as u64;
            prop_assert_eq!(outputs.end(Some(source)), end);
            match outputs.read(Some(source), at, max) {
                Err(error) => {
                    prop_assert!(at > end);
                    prop_assert_eq!(error, ReadError::BadCursor { cursor: at, end });
                }
                Ok(chunk) => {
                    prop_assert_eq!(chunk.begin, at.max(end.saturating_sub(4096)));
                    let length = (end - chunk.begin).min(max as u64);
                    prop_assert_eq!(chunk.next, chunk.begin + length);
                    prop_assert_eq!(chunk.bytes, &all[chunk.begin as usize..chunk.next as usize]);
                }
            }
        }
    }
}

#[test]
fn ten_thousand_reads_of_any_size_lose_no_byte() {
    let (mut outputs, mut model) = (Outputs::new(1 << 20, &RingPool::default()), Model::default());
    let (mut read, mut own) = (Vec::new(), [Vec::new(), Vec::new()]);
    let mut seed = 1_u64;
    let mut draw = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % most
    };
    for _ in 0..10_000 {
        model.append(&mut outputs, source(draw(2) == 1), draw(200) as usize);
        let chunk = outputs.read(None, read.len() as u64, draw(300) as usize).unwrap();
        assert_eq!(chunk.begin, read.len() as u64, "no gap");
        read.extend(chunk.bytes);
        for source in Source::BOTH {
            let own = &mut own[source.index()];
            let chunk = outputs.read(Some(source), own.len() as u64, draw(150) as usize).unwrap();
            assert_eq!(chunk.begin, own.len() as u64);
            own.extend(chunk.bytes);
        }
    }
    outputs.finish();
    let rest = outputs.read(None, read.len() as u64, usize::MAX).unwrap();
    read.extend(rest.bytes);
    let all: Vec<u8> = model.all.iter().map(|(.., byte)| *byte).collect();
    assert!(rest.eof && read == all);
    for source in Source::BOTH {
        let own = &mut own[source.index()];
        own.extend(outputs.read(Some(source), own.len() as u64, usize::MAX).unwrap().bytes);
        assert!(*own == model.of(source));
    }
}

#[test]
fn a_flood_of_one_takes_nothing_of_the_other_and_leaves_one_exact_gap() {
    let mut outputs = Outputs::new(8192, &RingPool::default());
    outputs.append(Source::Stderr, b"warning\n");
    outputs.append(Source::Output, &[b'x'; 10_000]);
    outputs.append(Source::Stderr, b"error\n");
    let first = outputs.read(None, 0, 9999).unwrap();
    assert_eq!((first.begin, first.bytes.as_slice()), (0, &b"warning\n"[..]), "up to the gap");
    let second = outputs.read(None, first.next, 99_999).unwrap();
    assert_eq!(second.begin - first.next, 10_000 - 4096);
    assert!(second.bytes.starts_with(b"xxx") && second.bytes.ends_with(b"xxxerror\n"));
    let alone = outputs.read(Some(Source::Stderr), 0, 99).unwrap();
    assert_eq!(alone.bytes, b"warning\nerror\n");
}

#[test]
fn the_end_is_told_of_each_and_of_both() {
    let mut outputs = Outputs::new(8192, &RingPool::default());
    outputs.append(Source::Output, b"out");
    outputs.close(Source::Output);
    let eof = |outputs: &Outputs, source, cursor| outputs.read(source, cursor, 9).unwrap().eof;
    assert!(eof(&outputs, Some(Source::Output), 0));
    assert!(!eof(&outputs, Some(Source::Stderr), 0) && !eof(&outputs, None, 0));
    outputs.close(Source::Stderr);
    assert!(eof(&outputs, Some(Source::Stderr), 0) && eof(&outputs, None, 0));
    assert!(!outputs.read(None, 0, 2).unwrap().eof, "one byte follows");
}

#[test]
fn memory_comes_from_the_pool_and_goes_back() {
    let pool = RingPool::default();
    let mut outputs = Outputs::new(1 << 20, &pool);
    let least = pool.used();
    assert!((2 * 4096..3 * 4096).contains(&least), "{least}");
    for _ in 0..1000 {
        outputs.append(Source::Output, &[1; 100]);
        outputs.append(Source::Stderr, &[2; 100]);
    }
    assert!(pool.used() > 200_000 + 2000 * 24);
    outputs.finish();
    assert!(pool.used() <= 200_000 + 2000 * 24, "{}", pool.used());
    drop(outputs);
    assert_eq!(pool.used(), 0);
}
