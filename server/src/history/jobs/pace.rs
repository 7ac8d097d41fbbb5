//! Rate limit of a batch.

use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

/// Spaces operations by a fixed step; up to one second of unused turns may be used at once.
pub(super) struct Pace {
    step: Duration,
    next_at: Mutex<Instant>,
}

/// A rate below one operation an hour is as good as never.
const STEP_MAX: Duration = Duration::from_secs(60 * 60);
const BURST: Duration = Duration::from_secs(1);

impl Pace {
    /// The client may lower the node's rate, not raise it.
    pub(super) fn new(asked_per_second: f32, allowed_per_second: f32) -> Self {
        let is_asked = asked_per_second > 0.0 && asked_per_second < allowed_per_second;
        let per_second = if is_asked { asked_per_second } else { allowed_per_second };
        let step = Duration::try_from_secs_f32(1.0 / per_second).unwrap_or(STEP_MAX).min(STEP_MAX);
        Self { step, next_at: Mutex::new(Instant::now()) }
    }

    /// Returns when the next operation may begin.
    pub(super) async fn turn(&self) {
        let turn = {
            let mut next_at = self.next_at.lock().expect("nobody panics while holding it");
            let now = Instant::now();
            let turn = now.checked_sub(BURST).map_or(*next_at, |earliest| earliest.max(*next_at));
            *next_at = turn + self.step;
            turn
        };
        tokio::time::sleep_until(turn).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn time_of(pace: &Pace, n_turns: u32) -> Duration {
        let began = Instant::now();
        for _ in 0..n_turns {
            pace.turn().await;
        }
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_is_no_faster_than_it_was_asked_to_be() {
        assert_eq!(time_of(&Pace::new(2.0, 50.0), 21).await.as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_gets_more_than_the_node_allows() {
        for asked in [0.0, -1.0, f32::NAN, 1000.0] {
            assert_eq!(time_of(&Pace::new(asked, 50.0), 501).await.as_secs(), 10, "{asked}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_is_made_up_for_by_a_second_at_most() {
        let pace = Pace::new(0.0, 10.0);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(time_of(&pace, 10).await.as_secs(), 0);
        assert!(time_of(&pace, 10).await.as_millis() >= 900);
    }
}
