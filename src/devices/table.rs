//! The dies as text.

use std::fmt::Write as _;

use super::{Clock, Devices, GpuDie};

/// A table of the dies; those of one board stand together under its line.
pub fn render(devices: &Devices) -> String {
    let mut text = String::new();
    match (&devices.driver, &devices.no_gpu) {
        (Some(driver), _) => {
            line(&mut text, &format!("driver {}, CUDA up to {}", driver.version, driver.cuda));
        }
        (None, Some(why)) => line(&mut text, &format!("no GPU: {why}")),
        (None, None) => {}
    }
    if let Some(entry) = &devices.mask_stops_at {
        line(
            &mut text,
            &format!("CUDA_VISIBLE_DEVICES: `{entry}` names no die; it and what follows it select nothing"),
        );
    }
    for board in boards(&devices.dies) {
        if let [first, _, ..] = board[..] {
            line(&mut text, &format!("\nboard {}: {} with {} dies", board_name(first), first.name, board.len()));
        } else {
            text.push('\n');
        }
        board.iter().for_each(|die| describe(&mut text, die));
    }
    let cpu = &devices.cpu;
    let model = cpu.model.as_deref().unwrap_or("CPU");
    let plural = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    line(&mut text, &format!("\ncpu: {model}, {}, {}", plural(cpu.cores, "core"), plural(cpu.numa_nodes, "NUMA node")));
    text.trim_start().to_owned()
}

fn line(text: &mut String, words: &str) {
    text.push_str(words);
    text.push('\n');
}

/// Dies grouped by board, in the order of each board's first die. A die of an unknown board stands alone.
fn boards(dies: &[GpuDie]) -> Vec<Vec<&GpuDie>> {
    let mut boards: Vec<Vec<&GpuDie>> = Vec::new();
    for die in dies {
        let same = |board: &&mut Vec<&GpuDie>| die.board.is_some() && board[0].board == die.board;
        match boards.iter_mut().find(same) {
            Some(board) => board.push(die),
            None => boards.push(vec![die]),
        }
    }
    boards
}

fn board_name(die: &GpuDie) -> String {
    die.board.map_or_else(|| "?".to_owned(), |board| format!("{board:#x}"))
}

fn describe(text: &mut String, die: &GpuDie) {
    let capability = die.compute_capability.map_or("?".to_owned(), |(major, minor)| format!("{major}.{minor}"));
    let numa = die.numa_node.map_or("?".to_owned(), |n| n.to_string());
    line(text, &format!("die {}: {}, compute capability {capability}", die.index, die.name));
    line(text, &format!("  {}  PCI {}  board {}  NUMA node {numa}", die.uuid, die.pci, board_name(die)));
    die.mig.iter().for_each(|uuid| line(text, &format!("  instance {uuid}")));
    let ecc = match (die.ecc, die.ecc_errors) {
        (Some(true), Some(n)) => format!("on, {n} uncorrected errors"),
        (Some(true), None) => "on".to_owned(),
        (Some(false), _) => "off".to_owned(),
        (None, _) => "?".to_owned(),
    };
    let temperature = die.temperature.map_or("?".to_owned(), |t| t.to_string());
    line(
        text,
        &format!(
            "  memory {} of {} MiB in use  clocks {} (multiprocessors), {} (memory)  ECC {ecc}  {temperature} °C",
            mib(die.memory_used),
            mib(die.memory_total),
            clock(die.sm_clock),
            clock(die.memory_clock)
        ),
    );
    if !die.throttling.is_empty() {
        line(text, &format!("  slowed by: {}", die.throttling.join(", ")));
    }
    for process in &die.processes {
        let name = process.name.as_deref().unwrap_or("?");
        line(text, &format!("  process {} ({name}): {} MiB", process.pid, mib(process.memory)));
    }
    match &die.unusable {
        None => line(text, "  usable"),
        Some(why) => line(text, &format!("  not usable: {why}")),
    }
}

fn mib(bytes: Option<u64>) -> String {
    bytes.map_or("?".to_owned(), |bytes| (bytes >> 20).to_string())
}

fn clock(clock: Clock) -> String {
    let mut text = String::new();
    let number = |mhz: Option<u32>| mhz.map_or("?".to_owned(), |mhz| mhz.to_string());
    // Writing to a string cannot fail.
    let _ = write!(text, "{} of {} MHz", number(clock.now), number(clock.allowed));
    text
}

#[cfg(test)]
mod tests {
    use super::super::{CpuDie, Driver, GpuProcess, tests::k80};
    use super::*;

    fn cpu() -> CpuDie {
        CpuDie { model: Some("AMD EPYC".to_owned()), cores: 16, numa_nodes: 1 }
    }

    #[test]
    fn the_two_dies_of_a_board_stand_together() {
        let mut dies = vec![k80(0, 0x200), k80(1, 0x300), k80(2, 0x200), k80(3, 0x300)];
        dies[2].processes = vec![GpuProcess { pid: 4242, name: Some("python3".to_owned()), memory: Some(300 << 20) }];
        dies[2].unusable = Some("in use by 4242 (python3)".to_owned());
        dies[3].throttling = vec!["power cap".to_owned()];
        let driver = Some(Driver { version: "470.256.02".to_owned(), cuda: "11.4".to_owned() });
        let devices = Devices { driver, no_gpu: None, mask_stops_at: Some("9".to_owned()), dies, cpu: cpu() };
        let die = |index: u32, pci: u32, board: &str| {
            format!(
                "die {index}: Tesla K80, compute capability 3.7\n  GPU-0000000{index}-1111-2222-3333-444444444444  PCI 00000000:0{pci}:00.0  \
                 board {board}  NUMA node 0\n  memory 0 of 11441 MiB in use  clocks 562 of 875 MHz (multiprocessors), 2505 of 2505 MHz (memory)  \
                 ECC on, 0 uncorrected errors  41 °C\n"
            )
        };
        let expected = [
            "driver 470.256.02, CUDA up to 11.4\n",
            "CUDA_VISIBLE_DEVICES: `9` names no die; it and what follows it select nothing\n",
            "\nboard 0x200: Tesla K80 with 2 dies\n",
            &die(0, 4, "0x200"),
            "  usable\n",
            &die(2, 6, "0x200"),
            "  process 4242 (python3): 300 MiB\n",
            "  not usable: in use by 4242 (python3)\n",
            "\nboard 0x300: Tesla K80 with 2 dies\n",
            &die(1, 5, "0x300"),
            "  usable\n",
            &die(3, 7, "0x300"),
            "  slowed by: power cap\n",
            "  usable\n",
            "\ncpu: AMD EPYC, 16 cores, 1 NUMA node\n",
        ];
        assert_eq!(render(&devices), expected.concat());
    }

    #[test]
    fn a_machine_without_a_driver_says_so_and_lists_its_cpu() {
        let why = Some("no driver is loaded".to_owned());
        let devices = Devices { driver: None, no_gpu: why, mask_stops_at: None, dies: vec![], cpu: cpu() };
        assert_eq!(render(&devices), "no GPU: no driver is loaded\n\ncpu: AMD EPYC, 16 cores, 1 NUMA node\n");
    }

    #[test]
    fn missing_readings_show_as_question_marks() {
        let bare = GpuDie { index: 0, uuid: "GPU-1".to_owned(), name: "New".to_owned(), ..GpuDie::default() };
        let devices = Devices { driver: None, no_gpu: None, mask_stops_at: None, dies: vec![bare], cpu: cpu() };
        let text = render(&devices);
        assert!(
            text.contains(
                "memory ? of ? MiB in use  clocks ? of ? MHz (multiprocessors), ? of ? MHz (memory)  ECC ?  ? °C"
            ),
            "{text}"
        );
    }
}
