//! What the assembler says each kernel needs of a multiprocessor.

use super::library::Host;
use super::nvrtc::{Arch, Nvrtc, NvrtcError, Target};
use super::ops;
use super::source;

/// Most static shared memory that a block may have on every chip.
pub const SHARED_LIMIT: u32 = 48 * 1024;

/// A kernel's needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Entry.
    pub entry: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of a thread's stack.
    pub stack: u32,
    /// Bytes that a thread writes to memory for want of registers, and reads back.
    pub spills: u32,
    /// Bytes of shared memory of a block.
    pub shared: u32,
}

/// The assembler's words are not understood, or a kernel breaks a limit.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// No compiler, or it refuses the source.
    #[error(transparent)]
    Nvrtc(#[from] NvrtcError),
    /// Not every kernel is reported.
    #[error("the report for {target} lacks kernel {entry}")]
    Missing {
        /// Target.
        target: Target,
        /// Kernel.
        entry: &'static str,
    },
}

/// Compiles all kernels for a target, and reports on each in the order of the rows. Also says which compiler did it.
///
/// # Errors
/// No compiler knows the target, the source does not compile, or the report lacks a kernel.
pub fn compile(host: &Host<'_>, target: Target) -> Result<(String, Vec<Needs>), ReportError> {
    let nvrtc = Nvrtc::for_target(host, target)?;
    let code = nvrtc.compile(&source::joined(), target, &["--ptxas-options=-v"])?;
    let mut all = parse(&code.log);
    let mut needs = Vec::new();
    for row in ops::ROWS {
        let at = all.iter().position(|n| n.entry == row.entry);
        let at = at.ok_or(ReportError::Missing { target, entry: row.entry })?;
        needs.push(all.swap_remove(at));
    }
    Ok((format!("NVRTC {}", nvrtc.version()), needs))
}

/// Reads the assembler's report.
fn parse(log: &str) -> Vec<Needs> {
    let mut all: Vec<Needs> = Vec::new();
    for line in log.lines() {
        if let Some(rest) = line.split("Compiling entry function '").nth(1) {
            let entry = rest.split('\'').next().unwrap_or_default().to_owned();
            all.push(Needs { entry, ..Needs::default() });
            continue;
        }
        let Some(last) = all.last_mut() else { continue };
        for part in line.split(',') {
            let words: Vec<&str> = part.split_whitespace().collect();
            let number = words.iter().find_map(|word| word.parse::<u32>().ok()).unwrap_or(0);
            if part.contains("spill stores") || part.contains("spill loads") {
                last.spills += number;
            } else if part.contains("stack frame") {
                last.stack = number;
            } else if part.contains("registers") {
                last.registers = number;
            } else if part.contains("bytes smem") {
                last.shared = number;
            }
        }
    }
    all
}

/// What breaks the limits: on a Tesla K80, which has the registers for all of it, any spilling; everywhere more shared memory than
/// a block may have.
pub fn faults(target: Target, needs: &[Needs]) -> Vec<String> {
    let (Target::Cubin(arch) | Target::Ptx(arch)) = target;
    let spills = |n: &&Needs| arch == Arch(37) && n.spills > 0;
    let spilling = needs.iter().filter(spills).map(|n| format!("{} spills {} bytes", n.entry, n.spills));
    let wide = needs.iter().filter(|n| n.shared > SHARED_LIMIT);
    spilling.chain(wide.map(|n| format!("{} has {} bytes of shared memory", n.entry, n.shared))).collect()
}

/// The reports of several targets side by side.
pub fn table(reports: &[(Target, Vec<Needs>)]) -> String {
    let mut text = format!("{:<32}", "kernel");
    for (target, _) in reports {
        text += &format!("  {:>36}", format!("{target}: registers spills shared"));
    }
    text.push('\n');
    for (i, row) in ops::ROWS.iter().enumerate() {
        text += &format!("{:<32}", row.entry);
        for (_, needs) in reports {
            let n = &needs[i];
            text += &format!("  {:>22} {:>6} {:>6}", n.registers, n.spills, n.shared);
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'one' for 'sm_37'
ptxas info    : Function properties for one
ptxas         .     232 bytes stack frame, 248 bytes spill stores, 268 bytes spill loads
ptxas info    : Used 128 registers, 5120 bytes smem, 464 bytes cmem[0], 8 bytes cmem[2]
ptxas info    : Compiling entry function 'two' for 'sm_90'
ptxas info    : Function properties for two
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 49156 bytes smem
";

    #[test]
    fn the_assemblers_words_are_read_of_old_and_new_versions() {
        let one = Needs { entry: "one".to_owned(), registers: 128, stack: 232, spills: 516, shared: 5120 };
        let two = Needs { entry: "two".to_owned(), registers: 32, stack: 0, spills: 0, shared: 49156 };
        assert_eq!(parse(LOG), [one, two]);
    }

    #[test]
    fn spills_and_too_much_shared_memory_are_faults() {
        let (old, new) = (Target::Cubin(Arch(37)), Target::Cubin(Arch(90)));
        assert_eq!(faults(old, &parse(LOG)), ["one spills 516 bytes", "two has 49156 bytes of shared memory"]);
        assert_eq!(faults(new, &parse(LOG)), ["two has 49156 bytes of shared memory"]);
        assert!(faults(old, &[Needs { shared: SHARED_LIMIT, ..Needs::default() }]).is_empty());
    }
}
