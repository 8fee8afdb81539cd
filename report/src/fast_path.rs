//! Documents that are certainly valid: the generated checker confirms that they follow the schema, and there are no
//! advisories. Reads a document once, without allocating. Undecided documents are read into a tree and explained.
//!
//! The advisories here are those of `advise.rs`, for documents that follow the schema. The scanner covers two of them:
//! it is not sure of integers over 2^53 − 1, nor of an endpoint with a user name.

use std::collections::HashSet;

use crate::generated::checker::{Names, Object, Place, Watch, decide, decide_object};
use crate::model::{CheckId, Layer, Status};
use crate::scan::{MAX_WORDS, UniqueWords};
use crate::tree::CheckCell;

#[cfg(test)]
mod suite;

/// Decides whether the document certainly has no violations and no advisories. Err: it may have some; contains the
/// valid objects read so far.
pub(crate) fn decide_document<'n>(
    document: &[u8],
    names: &'n Names,
) -> Result<(), Box<ValidatedObjects<'n>>> {
    let mut plausibility = Plausibility::default();
    if decide(document, names, &mut plausibility).is_some() && plausibility.holds() {
        return Ok(());
    }
    plausibility.read.is_complete = true;
    Err(Box::new(ValidatedObjects { names: Some(names), plausibility, taken: 0 }))
}

/// Objects of a document that is not certainly valid as a whole. Those that the checker is sure of need no
/// tree.
#[derive(Debug)]
pub(crate) struct ValidatedObjects<'n> {
    /// `None`: the checker is sure of nothing.
    names: Option<&'n Names>,
    plausibility: Plausibility,
    /// How many of those read before the reader has encountered.
    taken: usize,
}

impl<'n> ValidatedObjects<'n> {
    pub(crate) fn new(names: Option<&'n Names>) -> Self {
        Self { names, plausibility: Plausibility::default(), taken: 0 }
    }

    /// The object at the beginning of a text: its length and, for a check, its cell, which must not have occurred before.
    /// Must be called for all objects of a document, in order. left: the number of bytes of the document from here on.
    pub(crate) fn read(&mut self, object: Object, text: &[u8], left: usize) -> Option<(usize, CheckCell)> {
        if let Some(known) = self.plausibility.read.get(self.taken) {
            self.taken += 1;
            let length = left.checked_sub(usize::try_from(known.left).ok()?)?;
            return (length <= text.len()).then_some((length, known.cell));
        }
        let length = decide_object(text, object, self.names?, &mut self.plausibility)?;
        Some((length, self.plausibility.cell()))
    }

    /// Id and model of a check that was read here.
    pub(crate) fn cell(&self, cell: CheckCell) -> Option<(&'static str, Option<&'n str>)> {
        let id = CheckId::ALL.get(usize::from(cell.id))?.name();
        let model = usize::from(cell.model);
        Some((id, if model == NO_MODEL { None } else { Some(self.names?.model_id_or_null.get(model)?) }))
    }

    /// The number of checks with this status read here.
    pub(crate) fn counted(&self, status: Status) -> usize {
        let count = self.plausibility.counted.get(status as usize);
        count.and_then(|count| usize::try_from(*count).ok()).unwrap_or_default()
    }

    /// Whether a check for access to this model was read here.
    pub(crate) fn is_reached(&self, model: &str) -> bool {
        let index = self.names.and_then(|names| names.model_id_or_null.index(model.as_bytes()));
        let cells = &self.plausibility.cells[CheckId::ModelAccess as usize];
        index.is_some_and(|index| cells.has(index))
    }

    /// Whether each model of the configuration, which was read here, has an access check: one read here, or one of the
    /// others, which have these models.
    pub(crate) fn is_each_reached(&self, others: &HashSet<&str>) -> bool {
        let Some(names) = self.names else { return false };
        let mut cells = self.plausibility.cells[CheckId::ModelAccess as usize];
        for model in others {
            // It may already be present.
            _ = names.model_id_or_null.index(model.as_bytes()).and_then(|index| cells.add(index));
        }
        self.plausibility.models.are_among(&cells)
    }
}

/// The state of reading a document.
#[derive(Debug, Default)]
struct Plausibility {
    /// Id of the current check.
    id: usize,
    layer: usize,
    model: usize,
    status: usize,
    /// The models of each check; null is the last possible word.
    cells: [UniqueWords; CheckId::ALL.len()],
    /// The models under test.
    models: UniqueWords,
    /// Checks by status, and the counts in the summary.
    counted: [i64; Status::ALL.len()],
    stated: [i64; Status::ALL.len()],
    read: ObjectsRead,
}

/// Objects read, in document order: those that the reader asks about. As many as fit here are not read again.
#[derive(Debug)]
struct ObjectsRead {
    objects: [ObjectRead; MAX_OBJECTS],
    count: usize,
    /// Whether the attempt to find the document valid has ended.
    is_complete: bool,
}

/// Enough for the checks of some twenty models. An array, so that valid documents allocate nothing.
const MAX_OBJECTS: usize = 128;

#[derive(Debug, Clone, Copy, Default)]
struct ObjectRead {
    /// The number of bytes after it.
    left: u32,
    /// Of a check.
    cell: CheckCell,
}

impl Default for ObjectsRead {
    fn default() -> Self {
        Self { objects: [ObjectRead::default(); MAX_OBJECTS], count: 0, is_complete: false }
    }
}

impl ObjectsRead {
    #[inline]
    fn put(&mut self, left: usize, cell: CheckCell) {
        if !self.is_complete
            && let Some(place) = self.objects.get_mut(self.count)
            && let Ok(left) = u32::try_from(left)
        {
            *place = ObjectRead { left, cell };
            self.count += 1;
        }
    }

    fn get(&self, index: usize) -> Option<ObjectRead> {
        self.objects[..self.count].get(index).copied()
    }
}

/// Represents no model.
const NO_MODEL: usize = MAX_WORDS - 1;

impl Watch for Plausibility {
    #[inline]
    fn word(&mut self, place: Place, index: usize) -> Option<()> {
        match place {
            Place::CheckId => self.id = index,
            Place::CheckLayer => self.layer = index,
            Place::CheckModel => self.model = index,
            Place::CheckStatus => self.status = index,
            Place::ConfigurationModelsItem => self.models.add(index)?,
            _ => {}
        }
        Some(())
    }

    #[inline]
    fn integer(&mut self, place: Place, integer: i64) -> Option<()> {
        match place {
            Place::SummaryPassed => self.stated[Status::Pass as usize] = integer,
            Place::SummaryFailed => self.stated[Status::Fail as usize] = integer,
            Place::SummarySkipped => self.stated[Status::Skip as usize] = integer,
            _ => {}
        }
        Some(())
    }

    #[inline]
    fn null(&mut self, place: Place) -> Option<()> {
        if place == Place::CheckModel {
            self.model = NO_MODEL;
        }
        Some(())
    }

    #[inline]
    fn end(&mut self, object: Object, left: usize) -> Option<()> {
        if matches!(object, Object::Kit | Object::Configuration | Object::Environment) {
            self.read.put(left, CheckCell::default());
        }
        if object == Object::Check {
            let is_agents = self.id == CheckId::AgentCliSmoke as usize;
            let due = if is_agents { Layer::Agent } else { Layer::Api };
            if self.layer != due as usize {
                return None;
            }
            self.cells.get_mut(self.id)?.add(self.model)?;
            *self.counted.get_mut(self.status)? += 1;
            self.read.put(left, self.cell());
        }
        Some(())
    }
}

impl Plausibility {
    /// Of the present check.
    #[inline]
    fn cell(&self) -> CheckCell {
        let index = |index| u16::try_from(index).expect("words are at most 1024");
        CheckCell { id: index(self.id), model: index(self.model) }
    }

    fn holds(&self) -> bool {
        self.counted == self.stated && self.models.are_among(&self.cells[CheckId::ModelAccess as usize])
    }
}
