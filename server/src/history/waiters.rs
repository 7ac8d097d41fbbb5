//! Long polls on a run's history: who waits, and who is woken after a commit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use workflow::ExecutionKey;

/// Runs that somebody waits for. A run that nobody waits for costs nothing.
#[derive(Default)]
pub(crate) struct Waiters {
    waiting: Mutex<HashMap<ExecutionKey, Arc<Notify>>>,
}

/// Ends the wait when dropped, so that a client that went away leaves nothing behind.
pub(crate) struct Waiting<'a> {
    waiters: &'a Waiters,
    key: ExecutionKey,
    notify: Arc<Notify>,
}

impl Waiters {
    /// Starts to listen; whatever is committed after this call is noticed by `changed`.
    pub(crate) fn listen(&self, key: &ExecutionKey) -> Waiting<'_> {
        let notify = Arc::clone(self.lock().entry(key.clone()).or_default());
        Waiting { waiters: self, key: key.clone(), notify }
    }

    pub(crate) fn wake(&self, key: &ExecutionKey) {
        if let Some(notify) = self.lock().get(key) {
            notify.notify_waiters();
        }
    }

    pub(crate) fn wake_all(&self) {
        self.lock().values().for_each(|notify| notify.notify_waiters());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ExecutionKey, Arc<Notify>>> {
        self.waiting.lock().expect("nobody panics while holding it")
    }
}

impl Waiting<'_> {
    /// Arm it (`enable`) before looking at the run, so that no change falls between the look and the wait.
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.notify.notified()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut waiting = self.waiters.lock();
        // Two hold it when nobody else waits: the map and this one.
        if Arc::strong_count(&self.notify) == 2 {
            waiting.remove(&self.key);
        }
    }
}
