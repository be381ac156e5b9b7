//! Damage to the files of a sweep that nobody works on.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::check::files;
use super::schedule::Damage;
use crate::store::Layout;

/// Does damage to a results folder; whether there was anything to damage.
pub(super) fn inflict(folder: &Path, damage: Damage) -> io::Result<bool> {
    let (targets, which) = match damage {
        Damage::Flip(which, ..) | Damage::CutCheckpoint(which, _) => (newest_checkpoints(folder), which),
        Damage::CutLog(which, _) | Damage::TornLog(which) | Damage::Stray(which) => (unpublished_logs(folder), which),
        Damage::CutEvents(which, _) => (files(&Layout::new(folder).events()), which),
    };
    let Some(target) = targets.get(which as usize % targets.len().max(1)) else { return Ok(false) };
    match damage {
        Damage::Flip(_, place, bit) => {
            let mut bytes = fs::read(target)?;
            let Some(at) = fraction(bytes.len(), place) else { return Ok(false) };
            bytes[at] ^= 1 << (bit % 8);
            fs::write(target, bytes)?;
        }
        Damage::CutCheckpoint(_, place) | Damage::CutLog(_, place) | Damage::CutEvents(_, place) => {
            let bytes = fs::read(target)?;
            let Some(at) = fraction(bytes.len(), place) else { return Ok(false) };
            // A new file in its place: the published log may be another name of this one.
            fs::remove_file(target)?;
            fs::write(target, &bytes[..at])?;
        }
        Damage::TornLog(_) => OpenOptions::new().append(true).open(target)?.write_all(b"39,5.1234,5.0")?,
        Damage::Stray(_) => fs::write(target.with_file_name(".checkpoint-9.safetensors.1-0.tmp"), b"half")?,
    }
    Ok(true)
}

/// A place in so many bytes; none where there are none.
fn fraction(length: usize, place: u32) -> Option<usize> {
    let at = ((length as u64 * u64::from(place)) >> 32) as usize;
    (at < length).then_some(at)
}

/// The checkpoint of most steps in each attempt's folder.
fn newest_checkpoints(folder: &Path) -> Vec<PathBuf> {
    let steps = |path: &PathBuf| -> Option<u64> {
        path.file_name()?.to_str()?.strip_prefix("checkpoint-")?.strip_suffix(".safetensors")?.parse().ok()
    };
    let mut newest: Vec<(u64, PathBuf)> = Vec::new();
    for path in files(folder) {
        let Some(steps) = steps(&path) else { continue };
        match newest.iter_mut().find(|(_, other)| other.parent() == path.parent()) {
            Some(other) if other.0 < steps => *other = (steps, path),
            Some(_) => {}
            None => newest.push((steps, path)),
        }
    }
    newest.into_iter().map(|(_, path)| path).collect()
}

/// The logs in attempts' folders of runs that have no published log.
fn unpublished_logs(folder: &Path) -> Vec<PathBuf> {
    let in_attempt =
        |path: &PathBuf| path.parent().and_then(Path::parent).is_some_and(|run| run.join("run.json").exists());
    let unpublished =
        |path: &PathBuf| path.parent().and_then(Path::parent).is_some_and(|run| !run.join("log.csv").exists());
    let logs = files(folder).into_iter().filter(|path| path.ends_with("log.csv"));
    logs.filter(in_attempt).filter(unpublished).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_meets_what_it_names() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("runs/x-0123456789abcdef");
        let attempt = run.join("attempt-1");
        fs::create_dir_all(&attempt).unwrap();
        fs::write(run.join("run.json"), "{}").unwrap();
        assert!(!inflict(folder.path(), Damage::Flip(0, 0, 0)).unwrap(), "there is none");
        for (name, bytes) in
            [("checkpoint-9.safetensors", "old"), ("checkpoint-10.safetensors", "new!"), ("log.csv", "rows")]
        {
            fs::write(attempt.join(name), bytes).unwrap();
        }
        let read = |name: &str| fs::read_to_string(attempt.join(name)).unwrap();
        assert!(inflict(folder.path(), Damage::Flip(7, u32::MAX, 0)).unwrap());
        assert!(inflict(folder.path(), Damage::CutLog(3, 1 << 31)).unwrap());
        assert_eq!((read("checkpoint-10.safetensors"), read("log.csv")), ("new ".to_owned(), "ro".to_owned()));
        assert!(inflict(folder.path(), Damage::CutCheckpoint(0, 0)).unwrap());
        assert!(inflict(folder.path(), Damage::TornLog(0)).unwrap());
        assert_eq!((read("checkpoint-10.safetensors"), read("log.csv")), (String::new(), "ro39,5.1234,5.0".to_owned()));
        assert_eq!(read("checkpoint-9.safetensors"), "old");
        assert!(inflict(folder.path(), Damage::Stray(0)).unwrap());
        assert!(attempt.join(".checkpoint-9.safetensors.1-0.tmp").exists());
        fs::write(run.join("log.csv"), "published").unwrap();
        assert!(!inflict(folder.path(), Damage::TornLog(0)).unwrap(), "published logs are not touched");
    }
}
