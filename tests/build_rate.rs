//! `linerate generator --onto`: how fast frames are built, without a port of the machine's, so that it runs anywhere.

use crate::common::linerate;

#[test]
fn each_size_has_a_figure_for_each_number_of_cores() {
    let run = linerate("generator --onto memory --sizes 64,imix,9216 --cores 0 --duration 20ms --json")
        .run()
        .well();
    let figures = run.json();
    let figures = figures.as_array().unwrap();
    let sizes: Vec<f64> = figures.iter().map(|figure| figure["frame_size"].as_f64().unwrap()).collect();
    assert_eq!((sizes.len(), sizes[0], sizes[2]), (3, 64.0, 9216.0), "{sizes:?}");
    for figure in figures {
        let number = |name: &str| figure[name].as_f64().unwrap();
        assert!(number("pps") > 1e4, "{figure}");
        let bits = number("pps") * (number("frame_size") + 20.0) * 8.0;
        assert!((number("l1_bps") / bits - 1.0).abs() < 1e-9, "{figure}");
        assert_eq!(figure["onto"], "memory");
        assert_eq!(figure["cores"].as_array().unwrap().len(), 1);
    }
    assert!(run.stderr.contains("9216"), "{}", run.stderr);
}

#[test]
fn through_a_memif_frames_go_to_a_sink_on_another_core_or_come_back_in_turns() {
    let cores = std::thread::available_parallelism().unwrap().get();
    let run = linerate("generator --onto memif --sizes 64,9216 --duration 100ms --json").run().well();
    let figures = run.json();
    let figures = figures.as_array().unwrap();
    assert_eq!(figures.len(), 2 * cores, "a figure for each number of cores: {}", run.stderr);
    for figure in figures {
        assert_eq!(figure["onto"], "memif");
        // More than a ring holds: the places do come back.
        assert!(figure["pps"].as_f64().unwrap() * 0.1 > 1024.0, "{figure}");
        let (build, sink) = (figure["cores"].as_array().unwrap(), figure["sinks"].as_array().unwrap());
        assert_eq!(build.len(), sink.len(), "{figure}");
        let apart = build.iter().all(|core| !sink.contains(core));
        assert!(if 2 * build.len() > cores { build == sink } else { apart }, "{figure}");
    }
    assert!(run.stderr.contains("in turns with building"), "{}", run.stderr);
}

#[test]
fn wrong_use_is_refused_with_what_would_do() {
    for (flags, clue) in [
        ("--duration 2h", "up to a minute"),
        ("--duration 0s", "up to a minute"),
        ("--cores 4000", "core 4000"),
        ("--sizes 63", "64 to 9216"),
        ("--onto net_nil", "net_memif"),
        ("--flows none --cores 0,0", "fewer cores"),
        ("--onto memif --flows none --cores 0,0", "fewer cores"),
    ] {
        let finished = linerate(&format!("generator --onto memory {flags}")).run();
        let code = if clue == "fewer cores" { 1 } else { 2 };
        assert!(finished.refusal(code).contains(clue), "{flags}: {}", finished.stderr);
    }
}

#[cfg(feature = "dpdk")]
#[test]
fn with_dpdk_frames_go_onto_ports_too() {
    let run = linerate("generator --onto --sizes 64,9216 --cores 0 --duration 20ms --json").run().well();
    let figures = run.json();
    let places: Vec<&str> = figures.as_array().unwrap().iter().map(|f| f["onto"].as_str().unwrap()).collect();
    let alone = std::thread::available_parallelism().unwrap().get() == 1;
    let expected: &[&str] = if alone {
        &["memory", "memory", "memif", "memif", "null", "null"]
    } else {
        &["memory", "memory", "memif", "memif", "null", "null", "net_memif", "net_memif"]
    };
    assert_eq!(places, expected, "{}", run.stderr);
    assert!(figures.as_array().unwrap().iter().all(|f| f["pps"].as_f64().unwrap() > 0.0), "{figures}");
    assert!(run.stderr.contains("memory"), "{}", run.stderr);
}
