//! A disk that forgets. `recorder.c`, preloaded into a program, records what it does to files; this builds what is left of
//! them when the power fails at any point of that record.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The size of what a disk writes at once, in bytes: a larger write may happen in part.
const SECTOR: usize = 512;
/// The size of a record's fixed part.
const HEAD: usize = 25;
/// A record of a sync.
const SYNC: u8 = b'S';

/// The library to preload, built in this folder.
pub(super) fn recorder(folder: &Path) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/power_loss/recorder.c");
    let library = folder.join("recorder.so");
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source);
    let compiled = compile.output().expect("a C compiler, which Rust needs for linking");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    library
}

/// What a power failure takes of what was not synced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Loss {
    /// Nothing: a program that is killed loses nothing.
    Nothing,
    /// Everything, the names of files that were not synced with their folder among it.
    All,
    /// The contents of files, but not their names and their absence.
    Contents,
    /// Some: names as of some time before, and sectors by chance, which this number decides.
    Some(u64),
    /// Everything, on a disk that ignores syncs.
    AllEver,
}

#[derive(Debug, Default)]
struct Node {
    is_folder: bool,
    synced: Vec<u8>,
    /// Not synced, in this order.
    pending: Vec<Change>,
}

impl Node {
    fn sync(&mut self) {
        for change in self.pending.drain(..) {
            change.apply(&mut self.synced);
        }
    }
}

#[derive(Debug, Clone)]
enum Change {
    Written(usize, Vec<u8>),
    Length(usize),
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Written(at, bytes) => put(content, *at, bytes),
            Self::Length(length) => content.resize(*length, 0),
        }
    }

    /// Applies what chance leaves of it.
    fn apply_some(&self, content: &mut Vec<u8>, chance: &mut Chance) {
        match self {
            Self::Length(_) if !chance.toss() => {}
            Self::Length(_) => self.apply(content),
            Self::Written(at, bytes) => {
                let mut done = 0;
                while done < bytes.len() {
                    // To the end of the sector.
                    let end = bytes.len().min(done + SECTOR - (at + done) % SECTOR);
                    if chance.toss() {
                        put(content, at + done, &bytes[done..end]);
                    }
                    done = end;
                }
            }
        }
    }
}

fn put(content: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    content.resize(content.len().max(at + bytes.len()), 0);
    content[at..at + bytes.len()].copy_from_slice(bytes);
}

/// A change of names, in the order in which they happened.
#[derive(Debug, Clone)]
enum Naming {
    Added(PathBuf, usize),
    Removed(PathBuf),
    Renamed(PathBuf, PathBuf),
}

type Names = BTreeMap<PathBuf, usize>;

impl Naming {
    fn apply(&self, names: &mut Names) {
        match self {
            Self::Added(path, node) => _ = names.insert(path.clone(), *node),
            Self::Removed(path) => _ = names.remove(path),
            Self::Renamed(old, new) => {
                if let Some(node) = names.remove(old) {
                    names.insert(new.clone(), node);
                }
            }
        }
    }

    fn is_in(&self, folder: &Path) -> bool {
        let is_in = |path: &PathBuf| path.parent() == Some(folder);
        match self {
            Self::Added(path, _) | Self::Removed(path) => is_in(path),
            Self::Renamed(old, new) => is_in(old) || is_in(new),
        }
    }
}

/// Files and folders, as far as a record goes.
#[derive(Debug, Default)]
struct Disk {
    nodes: Vec<Node>,
    /// By their numbers in the record.
    known: HashMap<u64, usize>,
    /// As the program sees them.
    names: Names,
    /// As they are on the disk.
    synced: Names,
    pending: Vec<Naming>,
}

impl Disk {
    fn apply(&mut self, what: u8, file: u64, number: u64, bytes: &[u8]) {
        let number = usize::try_from(number).expect("a small file");
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        let known = self.known.get(&file).copied();
        match what {
            b'C' | b'M' => {
                self.nodes.push(Node { is_folder: what == b'M', ..Node::default() });
                let node = self.nodes.len() - 1;
                self.known.insert(file, node);
                self.name(Naming::Added(path(bytes), node));
            }
            b'L' | b'R' => {
                let mut places = bytes.split(|byte| *byte == 0).map(path);
                let (old, new) = places.next().zip(places.next()).expect("two paths");
                if what == b'R' {
                    self.name(Naming::Renamed(old, new));
                } else if let Some(node) = self.names.get(&old) {
                    self.name(Naming::Added(new, *node));
                }
            }
            b'U' | b'K' => self.name(Naming::Removed(path(bytes))),
            // Others are not files that the program made, such as its output.
            b'W' | b'T' => {
                if let Some(node) = known {
                    let written = || Change::Written(number, bytes.to_vec());
                    self.nodes[node].pending.push(if what == b'W' {
                        written()
                    } else {
                        Change::Length(number)
                    });
                }
            }
            SYNC if !bytes.is_empty() => self.sync_names(&path(bytes)),
            SYNC => {
                if let Some(node) = known {
                    self.nodes[node].sync();
                }
            }
            other => panic!("a record of {:?}", char::from(other)),
        }
    }

    fn name(&mut self, naming: Naming) {
        naming.apply(&mut self.names);
        self.pending.push(naming);
    }

    fn sync_names(&mut self, folder: &Path) {
        let (now, later): (Vec<Naming>, _) = self.pending.drain(..).partition(|naming| naming.is_in(folder));
        self.pending = later;
        for naming in now {
            naming.apply(&mut self.synced);
        }
    }

    /// Names and contents of files, folders without contents.
    fn left(mut self, loss: Loss) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut chance = Chance(if let Loss::Some(seed) = loss { seed } else { 0 });
        let survivors = match loss {
            Loss::All | Loss::AllEver => 0,
            Loss::Nothing | Loss::Contents => self.pending.len(),
            Loss::Some(_) => chance.below(self.pending.len() + 1),
        };
        for naming in &self.pending[..survivors] {
            naming.apply(&mut self.synced);
        }
        for node in &mut self.nodes {
            for change in node.pending.drain(..) {
                match loss {
                    Loss::Nothing => change.apply(&mut node.synced),
                    Loss::Some(_) => change.apply_some(&mut node.synced, &mut chance),
                    Loss::All | Loss::AllEver | Loss::Contents => {}
                }
            }
        }
        let nodes = &self.nodes;
        let content = |node: usize| (!nodes[node].is_folder).then(|| nodes[node].synced.clone());
        self.synced.iter().map(|(path, node)| (path.clone(), content(*node))).collect()
    }
}

/// A generator of random numbers (SplitMix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn toss(&mut self) -> bool {
        self.next().is_multiple_of(2)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("below a usize")
    }
}

/// What a program did to files.
pub(super) struct Record(Vec<u8>);

impl Record {
    pub(super) fn read(log: &Path) -> Self {
        Self(std::fs::read(log).expect("a record"))
    }

    /// Its whole records: where each ends, and its parts.
    fn steps(&self) -> impl Iterator<Item = (usize, (u8, u64, u64, &[u8]))> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let head = self.0.get(at..at + HEAD)?;
            let field = |number: usize| {
                let bytes = &head[1 + 8 * number..][..8];
                u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
            };
            let length = usize::try_from(field(2)).ok()?;
            let bytes = self.0.get(at + HEAD..at + HEAD + length)?;
            at += HEAD + length;
            Some((at, (head[0], field(0), field(1), bytes)))
        })
    }

    /// Its whole length in bytes.
    pub(super) fn end(&self) -> usize {
        self.0.len()
    }

    /// The points behind each sync.
    pub(super) fn syncs(&self) -> Vec<usize> {
        self.steps().filter(|(_, (what, ..))| *what == SYNC).map(|(end, _)| end).collect()
    }

    /// Builds a folder as it is after a power failure at a point of the record: `from` is its path there, `to` the new one. A
    /// folder of which nothing is left is not made.
    pub(super) fn rebuild(&self, point: usize, loss: Loss, from: &Path, to: &Path) {
        let left = self.left(point, loss);
        // Who can't be reached by way of folders is gone.
        let mut reached = HashSet::from([from.parent().expect("a parent").to_owned()]);
        for (path, content) in left {
            if !path.starts_with(from) || !path.parent().is_some_and(|parent| reached.contains(parent)) {
                continue;
            }
            let place = to.join(path.strip_prefix(from).expect("below it"));
            match content {
                None => {
                    std::fs::create_dir_all(&place).expect("a folder");
                    reached.insert(path);
                }
                Some(content) => std::fs::write(place, content).expect("a file"),
            }
        }
    }

    fn left(&self, point: usize, loss: Loss) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut disk = Disk::default();
        for (end, (what, file, number, bytes)) in self.steps() {
            if end > point {
                break;
            }
            if what != SYNC || loss != Loss::AllEver {
                disk.apply(what, file, number, bytes);
            }
        }
        disk.left(loss)
    }
}
