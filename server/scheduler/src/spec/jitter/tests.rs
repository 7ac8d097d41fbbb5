//! Values that FarmHash's own Go library gives.

use std::time::Duration;

use super::jitter;

const LONG: &str = "default-a-very-long-schedule-id-that-goes-on-and-on-0123456789";

#[test]
fn the_jitter_is_the_reference_s() {
    let cases = [
        ("", 0, 1000, 159),
        ("", 0, 86_400_000, 13_814_488),
        ("", 1_700_000_000, 3_600_000, 544_818),
        ("", 4_102_444_799, 86_400_000, 52_151_803),
        ("s", 0, 3_600_000, 3_224_815),
        ("s", 1_700_000_000, 1000, 102),
        ("s", 4_102_444_799, 86_400_000, 80_967_160),
        ("namespace", 0, 86_400_000, 6_877_452),
        ("namespace", 1_700_000_000, 3_600_000, 987_705),
        ("namespace", 4_102_444_799, 1000, 355),
        ("my-schedule-id", 0, 3_600_000, 3_308_280),
        ("my-schedule-id", 1_700_000_000, 86_400_000, 29_197_707),
        ("my-schedule-id", 4_102_444_799, 1000, 168),
        (LONG, 0, 86_400_000, 77_748_345),
        (LONG, 1_700_000_000, 3_600_000, 1_615_929),
        (LONG, 4_102_444_799, 86_400_000, 35_498_800),
    ];
    for (seed, nominal, most, expected) in cases {
        let jitter = jitter(seed, nominal, Duration::from_millis(most));
        assert_eq!(jitter, Duration::from_millis(expected), "{seed} {nominal} {most}");
    }
    assert_eq!(jitter("s", 0, Duration::ZERO), Duration::ZERO);
}
