//! Waiters for changes of a run, such as long polls on its history: registered here, woken after a commit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use workflow::ExecutionKey;

/// Runs that have waiters. A run without waiters costs nothing.
#[derive(Default)]
pub(crate) struct Waiters {
    waiting: Mutex<HashMap<ExecutionKey, Waited>>,
}

#[derive(Default)]
struct Waited {
    notify: Arc<Notify>,
    n_waiting: usize,
}

/// Ends the wait when dropped, so that a client that went away leaves nothing behind.
pub(crate) struct Waiting<'a> {
    waiters: &'a Waiters,
    key: ExecutionKey,
    notify: Arc<Notify>,
}

impl Waiters {
    /// Registers a waiter. It is woken by commits after a call of `changed`.
    pub(crate) fn listen(&self, key: &ExecutionKey) -> Waiting<'_> {
        let mut waiting = self.lock();
        let waited = waiting.entry(key.clone()).or_default();
        waited.n_waiting += 1;
        Waiting { waiters: self, key: key.clone(), notify: Arc::clone(&waited.notify) }
    }

    pub(crate) fn wake(&self, key: &ExecutionKey) {
        if let Some(waited) = self.lock().get(key) {
            waited.notify.notify_waiters();
        }
    }

    pub(crate) fn wake_all(&self) {
        self.lock().values().for_each(|waited| waited.notify.notify_waiters());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ExecutionKey, Waited>> {
        self.waiting.lock().expect("nobody panics while holding it")
    }
}

impl Waiting<'_> {
    /// Arm it (`enable`) before reading the run, so that no change is missed between the read and the wait.
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.notify.notified()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut waiting = self.waiters.lock();
        let Some(waited) = waiting.get_mut(&self.key) else { return };
        waited.n_waiting -= 1;
        if waited.n_waiting == 0 {
            waiting.remove(&self.key);
        }
    }
}
