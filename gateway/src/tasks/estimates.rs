//! Estimates how long videos take at providers that don't report it: from the times of the model's earlier videos, their length,
//! and the queue.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Estimated time of a video if none of its model is known.
const FIRST: Duration = Duration::from_mins(1);
/// Maximum number of models with known times.
const MAX_MODELS: usize = 1_000;
/// Decay of a video's weight with each later one: about ten count.
const FADING: f64 = 0.9;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Estimates {
    models: Mutex<HashMap<Arc<str>, ModelEstimate>>,
}

#[derive(Debug, Default)]
struct ModelEstimate {
    times: Times,
    /// Estimated seconds of work on the queued videos.
    waiting_s: f64,
    /// Number of videos that the provider is working on, and its maximum so far.
    working: u32,
    most: u32,
}

/// Times of videos by their length, in seconds: sums in which old ones decay.
#[derive(Debug, Default)]
struct Times {
    count: f64,
    length: f64,
    time: f64,
    square: f64,
    product: f64,
}

/// A video in progress: counts for its model until dropped.
pub(crate) struct VideoInProgress {
    estimates: Arc<Estimates>,
    model: Arc<str>,
    work_s: f64,
    stage: Option<EstimateStage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EstimateStage {
    Waiting,
    Working,
}

impl Times {
    fn add(&mut self, length: f64, time: f64) {
        let sums = [&mut self.count, &mut self.length, &mut self.time, &mut self.square, &mut self.product];
        for (sum, more) in sums.into_iter().zip([1.0, length, time, length * length, length * time]) {
            *sum = *sum * FADING + more;
        }
    }

    /// Linear regression of time over length, limited to lines that neither fall nor start below zero. If all videos had one
    /// length, time is assumed to be proportional to it.
    fn at(&self, length: f64) -> Option<f64> {
        if self.count == 0.0 {
            return None;
        }
        let (mean, time) = (self.length / self.count, self.time / self.count);
        let most = if mean > 0.0 { time / mean } else { 0.0 };
        let spread = self.square / self.count - mean * mean;
        let slope = if spread > 0.01 { (self.product / self.count - mean * time) / spread } else { most };
        Some(time + slope.clamp(0.0, most) * (length - mean))
    }
}

impl Estimates {
    /// Estimated time of a video of this many seconds. `waits`: whether it is queued behind earlier ones.
    pub(crate) fn of(&self, model: &str, length_s: u32, waits: bool) -> Duration {
        let models = self.lock();
        let known = models.get(model);
        let work = work_of(known, length_s);
        let queue =
            known.filter(|_| waits).map_or(0.0, |model| model.waiting_s / f64::from(model.most.max(1)));
        // A video queued behind those in progress also waits for about half of one of them.
        let rest = known.filter(|model| waits && model.working > 0).map_or(0.0, |_| work / 2.0);
        Duration::try_from_secs_f64(work + queue + rest).unwrap_or(FIRST)
    }

    /// Records that a provider made a video of this many seconds in this time.
    pub(crate) fn took(&self, model: &Arc<str>, length_s: u32, time: Duration) {
        self.with(model, |model| model.times.add(length_s.into(), time.as_secs_f64()));
    }

    /// Counts a video as in progress.
    pub(crate) fn under_way(self: &Arc<Self>, model: &Arc<str>, length_s: u32) -> VideoInProgress {
        let work_s = work_of(self.lock().get(model), length_s);
        VideoInProgress { estimates: Arc::clone(self), model: Arc::clone(model), work_s, stage: None }
    }

    fn with(&self, model: &Arc<str>, change: impl FnOnce(&mut ModelEstimate)) {
        let mut models = self.lock();
        if models.len() < MAX_MODELS || models.contains_key(model) {
            change(models.entry(Arc::clone(model)).or_default());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, ModelEstimate>> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn work_of(model: Option<&ModelEstimate>, length_s: u32) -> f64 {
    model.and_then(|model| model.times.at(length_s.into())).unwrap_or(FIRST.as_secs_f64())
}

impl VideoInProgress {
    /// It is queued at its provider.
    pub(crate) fn waits(&mut self) {
        self.enter(Some(EstimateStage::Waiting));
    }

    /// Its provider is working on it.
    pub(crate) fn works(&mut self) {
        self.enter(Some(EstimateStage::Working));
    }

    fn enter(&mut self, stage: Option<EstimateStage>) {
        let (before, work_s) = (std::mem::replace(&mut self.stage, stage), self.work_s);
        self.estimates.with(&self.model, |model| {
            match before {
                Some(EstimateStage::Waiting) => model.waiting_s = (model.waiting_s - work_s).max(0.0),
                Some(EstimateStage::Working) => model.working = model.working.saturating_sub(1),
                None => {}
            }
            match stage {
                Some(EstimateStage::Waiting) => model.waiting_s += work_s,
                Some(EstimateStage::Working) => {
                    model.working += 1;
                    model.most = model.most.max(model.working);
                }
                None => {}
            }
        });
    }
}

impl Drop for VideoInProgress {
    fn drop(&mut self) {
        self.enter(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// For a video that isn't queued, in whole seconds.
    fn alone(estimates: &Estimates, length_s: u32) -> u64 {
        (estimates.of("m", length_s, false) + Duration::from_millis(500)).as_secs()
    }

    fn took(estimates: &Estimates, length_s: u32, time: u64) {
        estimates.took(&"m".into(), length_s, seconds(time));
    }

    #[test]
    fn unknown_model_is_estimated_at_one_minute() {
        let estimates = Estimates::default();
        assert_eq!(estimates.of("m", 5, true), seconds(60));
        took(&estimates, 5, 10);
        assert_eq!(estimates.of("other", 5, true), seconds(60));
    }

    #[test]
    fn estimate_grows_with_the_video_length() {
        let estimates = Estimates::default();
        took(&estimates, 5, 50);
        assert_eq!([1, 5, 10].map(|length| alone(&estimates, length)), [10, 50, 100]);
        // Twenty seconds for each, plus six per second of video.
        let estimates = Estimates::default();
        for length in [2, 5, 10, 5] {
            took(&estimates, length, 20 + 6 * u64::from(length));
        }
        assert_eq!([1, 5, 20].map(|length| alone(&estimates, length)), [26, 50, 140]);
        // Longer ones took less time: chance, which isn't extrapolated.
        let estimates = Estimates::default();
        for (length, time) in [(2, 40), (10, 20)] {
            took(&estimates, length, time);
        }
        assert!([1, 10, 100].iter().all(|length| (20..=40).contains(&alone(&estimates, *length))));
    }

    #[test]
    fn recent_videos_weigh_most() {
        let estimates = Estimates::default();
        (0..20).for_each(|_| took(&estimates, 5, 100));
        (0..20).for_each(|_| took(&estimates, 5, 10));
        assert!((10..=22).contains(&alone(&estimates, 5)), "{}", alone(&estimates, 5));
    }

    #[test]
    fn estimate_includes_the_queue_ahead() {
        let estimates = Arc::<Estimates>::default();
        let model: Arc<str> = "m".into();
        took(&estimates, 5, 30);
        let waiting = || estimates.of("m", 5, true).as_secs();
        assert_eq!(waiting(), 30);
        let mut at_work = estimates.under_way(&model, 5);
        at_work.works();
        assert_eq!((waiting(), alone(&estimates, 5)), (45, 30));
        let mut queued = [10, 5].map(|length| estimates.under_way(&model, length));
        queued.iter_mut().for_each(VideoInProgress::waits);
        assert_eq!(waiting(), 30 + 60 + 30 + 15);
        // Now two are made at once.
        queued[1].works();
        assert_eq!(waiting(), 30 + 60 / 2 + 15);
        drop((at_work, queued));
        assert_eq!(waiting(), 30);
    }

    #[test]
    fn number_of_known_models_is_bounded() {
        let estimates = Estimates::default();
        for model in 0..=MAX_MODELS {
            estimates.took(&model.to_string().into(), 5, seconds(1));
        }
        assert_eq!(estimates.lock().len(), MAX_MODELS);
        assert_eq!(estimates.of(&MAX_MODELS.to_string(), 5, false), FIRST);
    }
}
