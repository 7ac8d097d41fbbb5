//! Jitter: deterministic for a schedule and a time, on every node. The hash is FarmHash's 32-bit fingerprint, as in the
//! reference, so that migrated schedules keep their times.

use std::time::Duration;

/// From the first of January of the year 1 to the epoch.
const SECONDS_BEFORE_EPOCH: i64 = 62_135_596_800;

pub(super) fn jitter(seed: &str, nominal: i64, most: Duration) -> Duration {
    // The whole span in milliseconds has 32 bits, so that a product with a hash of 32 bits does not overflow.
    let millis = u64::try_from(most.as_millis()).unwrap_or(u64::MAX).min(u32::MAX.into());
    let share = u64::from(fingerprint(&hashed(seed, nominal)));
    Duration::from_millis((share * millis) >> 32)
}

/// The nominal time as Go writes it in binary (version, seconds, nanoseconds, no zone), then the seed.
fn hashed(seed: &str, nominal: i64) -> Vec<u8> {
    const VERSION: u8 = 1;
    const UTC: [u8; 2] = [0xff, 0xff];
    let mut bytes = vec![VERSION];
    bytes.extend((nominal + SECONDS_BEFORE_EPOCH).to_be_bytes());
    bytes.extend(0_u32.to_be_bytes());
    bytes.extend(UTC);
    bytes.extend(seed.as_bytes());
    bytes
}

const C1: u32 = 0xcc9e_2d51;
const C2: u32 = 0x1b87_3593;
const C3: u32 = 0xe654_6b64;

/// FarmHash's `Fingerprint32`, for the lengths that come here: a time alone has 15 bytes.
fn fingerprint(bytes: &[u8]) -> u32 {
    assert!(bytes.len() >= 13, "there is always a time");
    if bytes.len() <= 24 { short(bytes) } else { long(bytes) }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("a word has four bytes"))
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("a seed is short")
}

fn scrambled(word: u32) -> u32 {
    word.wrapping_mul(C1).rotate_right(17).wrapping_mul(C2)
}

fn stirred(hash: u32) -> u32 {
    hash.rotate_right(19).wrapping_mul(5).wrapping_add(C3)
}

fn mixed(word: u32, hash: u32) -> u32 {
    stirred(hash ^ scrambled(word))
}

fn finished(mut hash: u32) -> u32 {
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

fn short(bytes: &[u8]) -> u32 {
    let n = bytes.len();
    let mut a = word(bytes, (n >> 1) - 4);
    let b = word(bytes, 4);
    let c = word(bytes, n - 8);
    let d = word(bytes, n >> 1);
    let e = word(bytes, 0);
    let f = word(bytes, n - 4);
    let mut hash = d.wrapping_mul(C1).wrapping_add(length(bytes));
    a = a.rotate_right(12).wrapping_add(f);
    hash = mixed(c, hash).wrapping_add(a);
    a = a.rotate_right(3).wrapping_add(c);
    hash = mixed(e, hash).wrapping_add(a);
    a = a.wrapping_add(f).rotate_right(12).wrapping_add(d);
    finished(mixed(b, hash).wrapping_add(a))
}

fn long(bytes: &[u8]) -> u32 {
    let n = bytes.len();
    let last = |back: usize| scrambled(word(bytes, n - back));
    let mut h = length(bytes);
    let mut g = C1.wrapping_mul(h);
    let mut f = g;
    h = stirred(stirred(h ^ last(4)) ^ last(16));
    g = stirred(stirred(g ^ last(8)) ^ last(12));
    f = f.wrapping_add(last(20)).rotate_right(19).wrapping_add(113);
    let mut rest = bytes;
    while rest.len() > 20 {
        let [a, b, c, d, e] = [0, 4, 8, 12, 16].map(|at| word(rest, at));
        h = h.wrapping_add(a);
        g = g.wrapping_add(b);
        f = f.wrapping_add(c);
        h = mixed(d, h).wrapping_add(e);
        g = mixed(c, g).wrapping_add(a);
        f = mixed(b.wrapping_add(e.wrapping_mul(C1)), f).wrapping_add(d);
        f = f.wrapping_add(g);
        g = g.wrapping_add(f);
        rest = &rest[20..];
    }
    let turned = |value: u32| value.rotate_right(11).wrapping_mul(C1).rotate_right(17).wrapping_mul(C1);
    for part in [turned(g), turned(f)] {
        h = stirred(h.wrapping_add(part)).rotate_right(17).wrapping_mul(C1);
    }
    h
}

#[cfg(test)]
mod tests;
