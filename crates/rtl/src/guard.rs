//! Whoever waits for a child process waits for ever if it hangs: a thread beside ends it then.

use std::io::{self, Read};
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

/// A child process, which is ended when its answer does not come.
#[derive(Debug)]
pub(crate) struct Guard {
    child: Mutex<Child>,
    /// Beginnings and ends of waiting so far: odd while somebody waits.
    turns: AtomicU64,
    /// The child was ended, because it hung.
    hung: AtomicBool,
    /// Nobody will wait any more.
    over: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl Guard {
    /// Of `child`, which hangs if an answer takes longer than `patience`; it is found within twice
    /// that.
    pub(crate) fn new(child: Child, patience: Duration) -> io::Result<Arc<Self>> {
        let guard = Arc::new(Self {
            child: Mutex::new(child),
            turns: AtomicU64::new(0),
            hung: AtomicBool::new(false),
            over: AtomicBool::new(false),
            thread: Mutex::new(None),
        });
        let watched = Arc::clone(&guard);
        let started = thread::Builder::new()
            .name("guard".to_owned())
            .stack_size(64 << 10)
            .spawn(move || watched.watch(patience));
        match started {
            Ok(handle) => *lock(&guard.thread) = Some(handle.thread().clone()),
            Err(error) => {
                guard.end();
                return Err(error);
            }
        }
        Ok(guard)
    }

    fn watch(&self, patience: Duration) {
        while !self.over.load(Ordering::Acquire) {
            let before = self.turns.load(Ordering::Acquire);
            thread::park_timeout(patience);
            let waits = !before.is_multiple_of(2) && self.turns.load(Ordering::Acquire) == before;
            if waits && !self.over.load(Ordering::Acquire) {
                self.hung.store(true, Ordering::Release);
                // Its pipes close, and so whoever waits hears of it.
                let _ = lock(&self.child).kill();
                return;
            }
        }
    }

    /// Somebody waits for an answer from now on, or does so no more.
    pub(crate) fn waits(&self, waits: bool) {
        let turns = self.turns.fetch_add(1, Ordering::AcqRel);
        debug_assert_eq!(turns.is_multiple_of(2), waits);
    }

    /// Whether it is over because the child hung.
    pub(crate) fn has_ended_it(&self) -> bool {
        self.hung.load(Ordering::Acquire)
    }

    /// End the child, and read what it has left to say.
    pub(crate) fn last_words(&self) -> String {
        let mut child = lock(&self.child);
        let mut said = Vec::new();
        let _ = child.kill();
        if let Some(mut stderr) = child.stderr.take() {
            // Whatever it left: nothing more is known.
            let _ = stderr.read_to_end(&mut said);
        }
        String::from_utf8_lossy(&said).into_owned()
    }

    /// End the child, and the watching.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
        if let Some(thread) = &*lock(&self.thread) {
            thread.unpark();
        }
        let mut child = lock(&self.child);
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Who held it and panicked has left nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
