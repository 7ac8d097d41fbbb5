//! What is no batch is found, whatever the bytes are, and takes no more memory than the file has bytes.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;

const SEED: u64 = 20_261_118;
const ROUNDS: usize = 300;

/// A batch of one item in fjall's format.
fn batch(seqno: u64, key: &[u8], value: &[u8]) -> Vec<u8> {
    let length = u32::try_from(value.len()).unwrap().to_le_bytes();
    let mut item = vec![ITEM, 0, UNCOMPRESSED];
    item.extend(1_u64.to_le_bytes());
    item.extend(u16::try_from(key.len()).unwrap().to_le_bytes());
    item.extend([length, length].concat());
    item.extend([key, value].concat());
    let mut checksum = Xxh3::new();
    checksum.update(&item);
    let mut bytes = vec![START];
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(seqno.to_le_bytes());
    bytes.extend(item);
    bytes.push(END);
    bytes.extend(checksum.digest().to_le_bytes());
    bytes.extend(TRAILER);
    bytes
}

fn scan(bytes: &[u8]) -> (Scan, Chain) {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal { number: 0, path: directory.path().join("0.jnl") };
    std::fs::write(&journal.path, bytes).unwrap();
    let mut chain = Chain::default();
    (journal.scan(&mut chain).unwrap(), chain)
}

#[test]
fn batches_are_read_up_to_the_unwritten_rest() {
    let note = Note { number: 4, after: 3, synced: 2 };
    let mut bytes = [batch(3, b"key", b"value"), batch(4, keys::JOURNAL, &note.encode())].concat();
    let end = bytes.len() as u64;
    bytes.resize(bytes.len() + 100_000, 0);
    let (found, chain) = scan(&bytes);
    assert_eq!(found, Scan { n_batches: 2, end, damage: None });
    assert_eq!((chain.last, chain.synced, chain.gap), (4, 2, None));
}

#[test]
fn a_missing_batch_is_noticed_by_the_next_one() {
    let note = Note { number: 8, after: 7, synced: 2 };
    let (_, chain) = scan(&[batch(3, b"key", b"value"), batch(9, keys::JOURNAL, &note.encode())].concat());
    assert_eq!(chain.gap, Some(Gap { last: 3, expected: 7 }));
}

#[test]
fn a_number_that_contradicts_its_neighbours_is_damage() {
    let noted = |seqno, note: Note| batch(seqno, keys::JOURNAL, &note.encode());
    let (first, second) = (Note { number: 4, after: 3, synced: 2 }, Note { number: 6, after: 4, synced: 2 });
    for (seqno, is_sound) in [(4, true), (5, true), (6, false), (1 << 40, false)] {
        let (found, _) = scan(&[batch(3, b"key", b"value"), noted(seqno, first), noted(6, second)].concat());
        assert_eq!(found.damage.is_none(), is_sound, "{seqno}");
    }
    let (found, _) = scan(&[batch(3, b"key", b"value"), noted(3, first)].concat());
    assert_eq!(found.damage.map(|damage| damage.flaw), Some(Flaw::Order));
}

#[test]
fn every_changed_byte_is_noticed() {
    let first = batch(1, b"key", b"value");
    let bytes = [first.clone(), batch(2, b"key", &[7; 50]), batch(3, b"key", b"x")].concat();
    for at in 0..bytes.len() {
        // fjall's checksum covers the items: a number or a count in a batch's start is not part of it.
        let in_start = |start: usize| (start + 5..start + 1 + START_BYTES).contains(&at);
        if in_start(0) || in_start(first.len()) || in_start(bytes.len() - batch(3, b"key", b"x").len()) {
            continue;
        }
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        let (found, _) = scan(&damaged);
        let damage = found.damage.unwrap_or_else(|| panic!("a changed byte at {at}"));
        assert!(found.end <= at as u64 && found.n_batches + damage.later.n_batches == 2, "at {at}: {damage:?}");
    }
}

#[test]
fn random_bytes_are_no_batches_and_no_reason_to_panic() {
    let mut random = StdRng::seed_from_u64(SEED);
    let rounds = std::env::var("EVERROW_FUZZ_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    for _ in 0..rounds {
        let mut bytes = batch(1, b"key", &[1; 200]);
        let n_noise = random.random_range(1..3000);
        // Small bytes are tags and plausible lengths.
        bytes
            .extend((0..n_noise).map(|_| if random.random() { random.random_range(0..5_u8) } else { random.random() }));
        bytes.push(1);
        let (found, _) = scan(&bytes);
        assert_eq!((found.n_batches, found.damage.is_some()), (1, true));
    }
}
