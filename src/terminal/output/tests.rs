use proptest::prelude::*;

use super::*;

const SIZE: Size = Size { columns: 80, rows: 24, pixel_width: 0, pixel_height: 0 };
const RAW: Kind = Kind { answers: false, sizes: false };

/// Adds a raw subscriber.
fn subscribe(output: &mut Output, cursor: u64, cut: &CancellationToken) -> SubscriptionId {
    let id = output.name();
    output.subscribe(id, cursor, RAW, cut.clone()).unwrap();
    id
}

fn output() -> Output {
    Output::new(4096, SIZE, &RingPool::default())
}

/// One in which subscribers are cut already when they are 10 to 20 kB behind.
fn short_of_memory() -> Output {
    Output::new(4096, SIZE, &RingPool::new(16_000))
}

fn pattern(from: usize, count: usize) -> Vec<u8> {
    (from..from + count).map(|n| (n % 251) as u8).collect()
}

#[derive(Debug, Clone)]
enum Op {
    Append(usize),
    Subscribe(u64),
    Take(usize, usize),
    Unsubscribe(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (0_usize..9000).prop_map(Op::Append),
        1 => (0_u64..100_000).prop_map(Op::Subscribe),
        4 => (0_usize..4, 0_usize..9000).prop_map(|(which, max)| Op::Take(which, max)),
        1 => (0_usize..4).prop_map(Op::Unsubscribe),
    ]
}

/// A subscriber and the offset up to which it has seen every byte.
struct Seen {
    id: SubscriptionId,
    cursor: usize,
    cut: CancellationToken,
}

fn apply(op: Op, output: &mut Output, all: &mut Vec<u8>, seen: &mut Vec<Seen>) {
    match op {
        Op::Append(count) => {
            let bytes = pattern(all.len(), count);
            output.append(&bytes, |_| ());
            all.extend(bytes);
        }
        Op::Subscribe(cursor) if cursor > output.end() => {
            let end = output.end();
            let refused =
                output.subscribe(SubscriptionId(0), cursor, RAW, CancellationToken::new());
            assert_eq!(refused.unwrap_err(), ReadError::BadCursor { cursor, end });
        }
        Op::Subscribe(cursor) => {
            let cut = CancellationToken::new();
            let id = output.name();
            let begin = output.subscribe(id, cursor, RAW, cut.clone()).unwrap().cursor;
            assert_eq!(begin, cursor.max(output.dropped()));
            seen.push(Seen { id, cursor: usize::try_from(begin).unwrap(), cut });
        }
        Op::Take(which, max) if which < seen.len() => {
            let Seen { id, cursor, .. } = &mut seen[which];
            match output.pending(*id, max) {
                Pending::Bytes(bytes) => {
                    assert_eq!(bytes, all[*cursor..*cursor + bytes.len()]);
                    assert!(max == 0 || !bytes.is_empty());
                    output.taken(*id, bytes.len());
                    *cursor += bytes.len();
                }
                Pending::Nothing => assert_eq!(*cursor, all.len()),
                Pending::Size(_) | Pending::End(_) | Pending::Over => panic!("it has not ended"),
            }
        }
        Op::Unsubscribe(which) if which < seen.len() => {
            output.unsubscribe(seen.swap_remove(which).id);
        }
        Op::Take(..) | Op::Unsubscribe(_) => {}
    }
}

proptest! {
    #[test]
    fn every_subscriber_sees_every_byte_once_and_reads_see_the_ring(
        ops in prop::collection::vec(op(), 0..80), short in any::<bool>(),
    ) {
        let mut output = if short { short_of_memory() } else { output() };
        let (mut all, mut seen) = (Vec::new(), Vec::<Seen>::new());
        for op in ops {
            apply(op, &mut output, &mut all, &mut seen);
            for gone in seen.extract_if(.., |seen| seen.cut.is_cancelled()) {
                prop_assert!(short && (gone.cursor as u64) < output.dropped());
                prop_assert_eq!(output.pending(gone.id, 1), Pending::Nothing);
            }
            let chunk = output.read(0, usize::MAX).unwrap();
            prop_assert_eq!(&chunk.bytes, &all[all.len().saturating_sub(4096)..]);
            prop_assert_eq!(chunk.begin, output.dropped());
            prop_assert_eq!(chunk.next, all.len() as u64);
            let slowest = seen.iter().map(|s| s.cursor as u64).min().unwrap_or(u64::MAX);
            let needed = output.dropped().saturating_sub(slowest);
            prop_assert_eq!(output.backlog.len() as u64, needed);
        }
    }
}

#[test]
fn a_subscriber_beyond_the_lag_is_cut_and_the_others_are_not() {
    let mut output = output();
    let (slow_cut, quick_cut) = (CancellationToken::new(), CancellationToken::new());
    let slow = subscribe(&mut output, 0, &slow_cut);
    let quick = subscribe(&mut output, 0, &quick_cut);
    let block = vec![0; 1 << 16];
    for _ in 0..128 {
        output.append(&block, |_| ());
        output.taken(quick, block.len());
    }
    assert_eq!(output.pending(slow, 1), Pending::Bytes(vec![0]), "8 MiB behind is allowed");
    output.append(b"x", |_| ());
    assert!(slow_cut.is_cancelled() && !quick_cut.is_cancelled());
    assert_eq!(output.pending(slow, 1), Pending::Nothing);
    assert_eq!(output.pending(quick, 9), Pending::Bytes(b"x".to_vec()));
    assert!(output.backlog.copy(0, 1).is_empty(), "the backlog went with the stream");
}

#[test]
fn a_subscriber_is_cut_when_the_memory_for_slow_ones_is_used_up() {
    let pool = RingPool::new(10_000);
    let mut output = Output::new(4096, SIZE, &pool);
    let cut = CancellationToken::new();
    subscribe(&mut output, 0, &cut);
    output.append(&[0; 14_096], |_| ());
    assert!(!cut.is_cancelled());
    output.append(&[0; 1], |_| ());
    assert!(cut.is_cancelled());
    assert_eq!(pool.backlog_used(), 0);
}

#[test]
fn the_end_is_told_after_the_last_byte_only() {
    let mut output = output();
    let id = subscribe(&mut output, 0, &CancellationToken::new());
    output.append(b"last", |_| ());
    output.finish(7);
    assert!(!output.read(0, 3).unwrap().eof);
    assert!(output.read(1, 3).unwrap().eof);
    assert_eq!(output.read(5, 1), Err(ReadError::BadCursor { cursor: 5, end: 4 }));
    assert_eq!(output.pending(id, 9), Pending::Bytes(b"last".to_vec()));
    output.taken(id, 4);
    assert_eq!(output.pending(id, 9), Pending::End(7));
}

#[test]
fn a_size_is_pending_before_the_bytes_that_it_affects() {
    let mut output = output();
    output.append(b"old", |_| ());
    let id = output.name();
    let kind = Kind { answers: false, sizes: true };
    output.subscribe(id, 1, kind, CancellationToken::new()).unwrap();
    output.resize(Size::new(10, 5));
    output.append(b"new", |_| ());
    assert_eq!(output.pending(id, 9), Pending::Bytes(b"ld".to_vec()));
    output.taken(id, 2);
    assert_eq!(output.pending(id, 9), Pending::Size(Size::new(10, 5)));
    output.told(id);
    assert_eq!(output.pending(id, 9), Pending::Bytes(b"new".to_vec()));
    output.unsubscribe(id);
    assert_eq!(output.geometry.after(0), None, "nobody has to be told");
}

#[test]
fn what_is_undrawn_stays_in_the_ring_and_is_where_a_painted_stream_begins() {
    let mut output = output();
    let mut judge = vt100::Parser::new(24.try_into().unwrap(), 80.try_into().unwrap(), 0);
    for number in 0..3000 {
        let text = format!("\x1b[3{}m{number}漢 ", number % 8);
        output.append(text.as_bytes(), |_| ());
        judge.process(text.as_bytes());
        assert!(output.drawn() >= output.dropped() && output.undrawn() <= 4096);
        if number % 100 == 0 {
            let (mut painted, cursor) = output.baseline();
            painted.extend(output.read(cursor, usize::MAX).unwrap().bytes);
            let mut newcomer =
                vt100::Parser::new(24.try_into().unwrap(), 80.try_into().unwrap(), 0);
            newcomer.process(&painted);
            assert_eq!(newcomer.screen().contents(), judge.screen().contents());
        }
    }
}

#[test]
fn without_memory_for_a_model_a_stream_begins_with_what_is_retained() {
    let pool = RingPool::new(10_000);
    let mut output = Output::new(4096, SIZE, &pool);
    output.append(b"text", |_| ());
    assert_eq!(output.draw(false), Drawn::default());
    assert_eq!((output.view(), pool.screens_used()), (None, 0));
    let (painted, cursor) = output.baseline();
    assert!(painted.ends_with(b"text") && cursor == 4);
}

#[test]
fn the_memory_of_a_model_is_taken_with_the_first_output_and_given_back() {
    let pool = RingPool::default();
    let mut output = Output::new(4096, SIZE, &pool);
    assert_eq!(output.baseline().0, BLANK);
    assert_eq!(pool.screens_used(), 0);
    output.append(b"x", |_| ());
    assert!(output.draw(false).progress);
    assert_eq!(pool.screens_used(), 4096 + 48 * 80 * 24);
    output.resize(Size::new(10, 10));
    assert_eq!(pool.screens_used(), 4096 + 4800);
    output.resize(Size::new(1000, 1000));
    assert_eq!((pool.screens_used(), output.view()), (0, None), "too large for one");
}

#[test]
fn a_subscription_has_what_was_there_before_the_output_was_lent_and_no_more() {
    let mut output = output();
    let early = subscribe(&mut output, 0, &CancellationToken::new());
    output.append(b"before", |_| ());
    assert_eq!(output.lend(|_| ()), 6);
    output.append(&[b'x'; 5000], |_| ());
    assert_eq!(output.lend(|_| ()), 5006, "the first end of each is what holds");
    let late = subscribe(&mut output, 5006, &CancellationToken::new());
    assert_eq!(output.pending(early, 9), Pending::Bytes(b"before".to_vec()));
    output.taken(early, 6);
    assert_eq!(output.pending(early, 9), Pending::Over);
    assert_eq!(output.pending(late, 9), Pending::Nothing);
}

#[test]
fn what_is_lent_is_asked_of_another_and_drawn_by_another() {
    let mut output = output();
    let client = output.name();
    let kind = Kind { answers: true, sizes: true };
    output.subscribe(client, 0, kind, CancellationToken::new()).unwrap();
    let wish = Wish { columns: 40, rows: 10, cell: (0, 0) };
    assert_eq!(output.wish(client, Some(wish)), Some(Size::new(40, 10)));
    output.append(b"before\x1b[c\x1b]2;old\x07", |_| ());
    let mut told = Vec::new();
    assert_eq!(output.lend(|turn| told.push((turn.queries.len(), turn.title))), 17);
    assert_eq!(told, [(0, Some("old".to_owned()))], "what was asked before is the client's");
    assert_eq!(output.wish(client, Some(wish)), None, "it has no say any longer");
    assert_eq!(output.baseline(), (BLANK.to_vec(), 17));
    output.resize(Size::new(100, 30));
    output.append(b"after", |_| ());
    output.draw_rest(|_| ());
    let view = output.view().unwrap();
    assert_eq!((view.size, &*view.rows[0], &*view.title), (Size::new(100, 30), "after", ""));
    let (painted, at) = output.baseline();
    assert_eq!(at, 22);
    assert!(!painted.windows(6).any(|piece| piece == b"before"));
    output.append(b"\x1b[c", |_| ());
    output.draw_rest(|turn| assert_eq!(turn.queries.len(), 1, "after its end, it is not"));
    let asked = output.unsubscribe(client);
    assert_eq!(asked.iter().map(|asked| asked.at).collect::<Vec<_>>(), [17], "it was not shown it");
}

#[test]
fn without_a_model_a_stream_begins_with_what_was_retained_since_the_output_was_lent() {
    let mut output = Output::new(4096, Size::new(1000, 1000), &RingPool::default());
    output.append(b"before", |_| ());
    output.draw_rest(|_| ());
    assert_eq!(output.baseline(), ([BLANK, b"before"].concat(), 6));
    output.lend(|_| ());
    output.append(b"after", |_| ());
    output.draw_rest(|_| ());
    assert_eq!(output.baseline(), ([BLANK, b"after"].concat(), 11));
}
