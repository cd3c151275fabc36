//! The HTML page: its markup, and its behaviour in a real headless browser.
#![allow(clippy::unwrap_used)] // a test may panic

mod kinds;
mod strategies;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use kinds::vectors::vectors;
use kinds::{certificate, followed, many, rules};
use report::html::{self, Contents, FlameGraph};
use results::Record;
use results::certificate::Certificate;
use results::fixtures::{Scenario, bench, oddities, searches};
use results::record::{GaugeReading, Gauges};

fn page(records: &[Record], certificates: &[Certificate], title: &str) -> String {
    page_of(&Contents { records, certificates, ..Contents::default() }, title)
}

fn page_of(contents: &Contents, title: &str) -> String {
    let mut page = Vec::new();
    html::write(contents, title, &mut page).unwrap();
    String::from_utf8(page).unwrap()
}

/// The text between the first `from` and the next `until`.
fn between<'a>(text: &'a str, from: &str, until: &str) -> &'a str {
    let (_, rest) = text.split_once(from).expect("the markup has this beginning");
    rest.split_once(until).expect("the markup has this end").0
}

/// Markup without its tags, one line a row of a table.
fn rows(table: &str) -> Vec<String> {
    let row = |row: &str| {
        let cells = row.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| text.trim());
        cells.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" | ")
    };
    let table = table.replace("<wbr>", "");
    table.split("<tr").skip(1).map(|text| row(&format!("<tr{text}"))).collect()
}

#[test]
fn tables_hold_the_figures() {
    let page = page(&bench(), &[], "Two routers");
    let matrix = rows(between(&page, "<table class=\"matrix\">", "</table>"));
    let runs = rows(between(&page, "<table class=\"runs sortable\">", "</table>"));
    insta::assert_snapshot!(format!("{}\n\n{}", matrix.join("\n"), runs.join("\n")));
}

#[test]
fn oddities_are_marked_and_explained() {
    let page = page(&oddities(), &[], "Oddities");
    let matrix = rows(between(&page, "<table class=\"matrix\">", "</table>"));
    let notes = between(&page, "<ul class=\"notes\">", "</ul>").replace("</li>", "\n");
    insta::assert_snapshot!(format!("{}\n\n{notes}", matrix.join("\n")));
    assert!(page.contains("0→1 stalled at 9.0 s after 3,909,251 frames"));
    assert!(page.contains("<p class=\"reason\">no frame came back"));
}

#[test]
fn the_page_holds_the_whole_records() {
    let records = bench();
    let page = page(&records, &[], "Two routers");
    let embedded = (0..records.len()).map(|at| {
        let begin = format!("<script type=\"application/gzip\" id=\"run-{at}-record\">");
        let packed = STANDARD.decode(between(&page, &begin, "</script>")).unwrap();
        serde_json::from_reader(GzDecoder::new(packed.as_slice())).unwrap()
    });
    let embedded: Vec<Record> = embedded.collect();
    assert!(embedded == records);
    assert!(
        records.iter().all(|record| page.contains(&format!("<dd>{}</dd>", record.id))),
        "a name is missing"
    );
    let plain: usize = records.iter().map(|record| serde_json::to_string(record).unwrap().len()).sum();
    assert!(
        page.len() < plain,
        "packed records take more room, {} bytes, than plain ones, {plain}",
        page.len()
    );
}

#[test]
fn each_run_and_each_cell_of_a_bench_says_what_links_it_fills() {
    let (bench, records) = rules();
    let benches = [bench];
    let contents = Contents { records: &records, benches: &benches, ..Contents::default() };
    let page = page_of(&contents, "Rules");
    let table = rows(between(&page, "<table class=\"figures bandwidths\">", "</table>"));
    insta::assert_snapshot!(table.join("\n"));
    assert_eq!(page.matches("<h3>As bandwidth</h3>").count(), records.len());

    // The terminal and Markdown have the same rows.
    let found = report::bench::Bench::new(&benches[0], &records).unwrap();
    let terminal = report::terminal::bench(&found, false);
    let markdown = report::markdown::markdown(&records, &benches);
    let cells = report::links::rows(&found);
    assert_eq!(cells.len(), table.len() - 1);
    for row in cells {
        let told = row.cells.join(" | ");
        assert!(table.iter().any(|line| line.ends_with(&told)), "{told}");
        assert!(markdown.contains(&told), "{told}");
        let line =
            terminal.lines().find(|line| line.starts_with(&row.name()) && line.contains(&row.cells[1]));
        let line = line.unwrap_or_else(|| panic!("no row of {} with {told}", row.name()));
        assert!(row.cells.iter().all(|cell| line.contains(cell)), "{line}");
    }
}

#[test]
fn devices_beyond_the_colours_have_shapes() {
    let records: Vec<Record> = many(30).collect();
    let page = page(&records, &[], "Ten devices");
    let boxes = between(&page, "<legend>Devices</legend>", "</fieldset>");
    let looks: Vec<&str> =
        boxes.split("<label ").skip(1).filter_map(|label| label.split('>').next()).collect();
    assert_eq!(looks.len(), 10);
    let distinct: std::collections::BTreeSet<&&str> = looks.iter().collect();
    assert_eq!(distinct.len(), 10, "{looks:?}");
    browse("devices.mjs", &page);
}

#[test]
fn hostile_names_stay_text() {
    let mut record = Scenario::default().record();
    let hostile = "</script><script>alert(1)</script><!-- <b>&";
    record.dut.name = hostile.to_owned();
    record.test = hostile.to_owned();
    record.reason = Some(hostile.to_owned());
    record.labels.insert(hostile.to_owned(), hostile.to_owned());
    record.dut.configuration.insert(hostile.to_owned(), hostile.to_owned());
    record.notes.push(hostile.to_owned());
    record.command.push(hostile.to_owned());
    let page = page(&[record], &[], hostile);
    assert!(!page.contains("<script>alert"));
    assert!(!page.contains("<!-- <b>"));
    assert_eq!(
        page.matches("</script>").count(),
        4,
        "the index, the record, what is told of it and the script"
    );
}

#[test]
fn a_page_without_records_is_a_page() {
    assert!(page(&[], &[], "Nothing").contains("0 runs"));
}

#[test]
fn the_page_names_no_address() {
    let page = page(&bench(), &[], "Two routers");
    for reference in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(reference), "the page contains {reference}");
    }
}

#[test]
fn searches_are_compared_by_goal_and_have_panels() {
    let page = page(&searches(), &[], "Searches");
    let matrix = rows(between(&page, "<table class=\"matrix\">", "</table>"));
    let runs = rows(between(&page, "<table class=\"runs sortable\">", "</table>"));
    let panels: Vec<_> = page.split("<details class=\"panel\"").skip(1).collect();
    let figures =
        panels.iter().map(|panel| rows(between(panel, "<table class=\"figures\">", "</table>")).join("\n"));
    let figures: Vec<_> = figures.collect();
    insta::assert_snapshot!(format!(
        "{}\n\n{}\n\n{}",
        matrix.join("\n"),
        runs.join("\n"),
        figures.join("\n\n")
    ));
    assert!(panels[3].contains("host interference affected too many trials"));
    assert_eq!(page.matches("<details id=\"run-").count(), searches().len());
    assert!(!page.contains("class=\"charts\""), "a search alone needs no stage for ramps");
}

/// A record of each strategy that has a panel, except searches.
fn others() -> Vec<Record> {
    let latency = |bidirectional| {
        let disturbed_at = Some(1);
        let mut record = Scenario { bidirectional, disturbed_at, ..Scenario::default() }.latency_test();
        record.test = format!("latency {}", record.test);
        record
    };
    let soak = Scenario { dut: "linux-bridge", ..Scenario::default() }.eventful_soak();
    let stalls = Scenario { dut: "linux-bridge", ..Scenario::default() }.stall_search();
    let waterfall = Scenario { dut: "sink", ..Scenario::default() }.waterfall();
    [latency(false), latency(true), soak, stalls, waterfall]
        .into_iter()
        .chain(strategies::rfc2544())
        .collect()
}

#[test]
fn other_strategies_have_tables_of_what_they_found() {
    let page = page(&others(), &[], "Strategies");
    let matrix = rows(between(&page, "<table class=\"matrix\">", "</table>"));
    let figures = page.split("<table class=\"figures\">").skip(1).map(|table| {
        let (table, _) = table.split_once("</table>").unwrap();
        let caption = between(table, "<caption>", "</caption>");
        format!("{caption}\n{}", rows(table).join("\n"))
    });
    let figures: Vec<_> = figures.collect();
    let runs = page.split("<table class=\"runs sortable\">").skip(1);
    let runs: Vec<_> = runs.map(|table| rows(table.split_once("</table>").unwrap().0).join("\n")).collect();
    insta::assert_snapshot!(format!(
        "{}\n\n{}\n\n{}",
        matrix.join("\n"),
        figures.join("\n\n"),
        runs.join("\n\n")
    ));
    assert!(page.contains("not conformant to RFC 2544"));
    assert_eq!(
        page.matches("data-runs=\"").count(),
        5 + 2,
        "a panel for each run, and for each device of RFC 2544"
    );
}

#[test]
fn the_way_of_the_frames_and_the_tester_alone_are_shown() {
    let page = page(&[followed(true), followed(false)], &[], "Counters");
    let ways = page.split("<table class=\"way\">").skip(1);
    let ways: Vec<_> = ways.map(|table| rows(table.split_once("</table>").unwrap().0).join("\n")).collect();
    insta::assert_snapshot!(ways.join("\n\n"));
    assert_eq!(page.matches("<em>counters disagree</em>").count(), 1);
    assert!(
        page.contains("of the 4.20 Mpps that the tester receives over the loopback</b>"),
        "the self-test is missing"
    );
}

#[test]
fn certificates_are_tables_with_a_picture_of_each_error() {
    let page = page(&[], &[certificate()], "Certificate");
    let section = between(&page, "<section id=\"certificates\">", "</details>");
    insta::assert_snapshot!(
        rows(between(section, "<table class=\"figures checks\">", "</table>")).join("\n")
    );
    assert!(section.contains("do not trust what this tester measures here"));
    assert_eq!(section.matches("<g class=\"sign\"").count(), 5, "nothing was measured in one check");
}

/// The table of a bench's medians, and what its repeats prove.
fn bench_tables(page: &str) -> Vec<String> {
    let matrix = between(page, "<table class=\"bench-matrix sortable\">", "</table>");
    let judged = page.split("<table class=\"figures judged\">").skip(1);
    let judged = judged.map(|table| table.split_once("</table>").unwrap().0);
    std::iter::once(matrix).chain(judged).map(|table| rows(table).join("\n")).collect()
}

#[test]
fn a_bench_is_a_matrix_and_what_its_repeats_prove() {
    let (bench, records) = rules();
    let benches = [bench];
    let contents = Contents { records: &records, benches: &benches, ..Contents::default() };
    let page = page_of(&contents, "Rules");
    insta::assert_snapshot!(bench_tables(&page).join("\n\n"));
    assert!(page.contains("further records of repeats that had come to their end before are left out: 1"));
    assert!(page.contains("<pre class=\"scroll\">sudo linerate bench rules.toml</pre>"));
    assert_eq!(page.matches("# 10 rules, 64 B, both ways").count(), 1, "each cell's command stands once");
    assert!(page.contains("Student's t, pooled s".replace('\'', "&#39;").as_str()), "no block of ministat");
    assert!(page.contains("<table class=\"matrix\">"), "a run of no bench is in no table");

    let found = report::bench::Bench::new(&benches[0], &records).unwrap();
    let terminal = report::terminal::bench(&found, false);
    let markdown = report::markdown::markdown(&records, &benches);
    same_claims(&found, &terminal, &markdown);
}

/// The terminal and Markdown say all that `found` proves.
fn same_claims(found: &report::bench::Bench, terminal: &str, markdown: &str) {
    for contrast in found.contrasts() {
        for (_, judged) in contrast.judged() {
            let sentence = report::judgement::sentence(&found.compared(&contrast), judged);
            assert!(terminal.contains(&format!("{}: {sentence}", judged.name)), "{sentence}");
            assert!(markdown.contains(&format!("- **{}**: {sentence}", judged.name)), "{sentence}");
        }
    }
}

#[test]
fn profiles_are_compared_device_by_device() {
    let (mut bench, records) = rules();
    assert!(bench.compare_with(&bench.profiles[0].name.clone()));
    let benches = [bench];
    let contents = Contents { records: &records, benches: &benches, ..Contents::default() };
    let tables = bench_tables(&page_of(&contents, "Rules"));
    let found = report::bench::Bench::new(&benches[0], &records).unwrap();
    let contrasts = found.contrasts();
    assert_eq!(
        tables.len(),
        1 + contrasts.iter().filter(|contrast| contrast.judged().next().is_some()).count()
    );
    assert_eq!(found.family, contrasts.iter().map(|contrast| contrast.judged().count()).sum::<usize>());
    let terminal = report::terminal::bench(&found, false);
    let markdown = report::markdown::markdown(&records, &benches);
    same_claims(&found, &terminal, &markdown);
    let title = format!("### {}, one way, against {}", benches[0].duts[0].name, benches[0].profiles[0].name);
    assert!(markdown.contains(&title), "{markdown}");
    let told = report::json::bench("rules", Some(&found), 0, &[]);
    assert_eq!(told["compare"], "profiles");
    for cell in told["cells"].as_array().unwrap() {
        let is_reference = cell["profile"] == *benches[0].profiles[0].name;
        assert_eq!(
            cell["comparison"].is_null(),
            is_reference || cell["repeats"].as_array().unwrap().is_empty(),
            "{cell}"
        );
        if !is_reference && !cell["comparison"].is_null() {
            assert_eq!(cell["comparison"]["reference"], *benches[0].profiles[0].name);
            assert_eq!(cell["comparison"]["group"], cell["profile"]);
        }
    }
}

#[test]
fn a_bench_whose_file_is_unknown_has_no_baseline() {
    let (_, records) = rules();
    let benches = results::bench::Bench::all(Vec::new(), &records);
    let page = page_of(&Contents { records: &records, benches: &benches, ..Contents::default() }, "Rules");
    assert!(!page.contains("<table class=\"figures judged\">"));
    assert!(page.contains("no device is compared with another: --baseline names one"));
    assert_eq!(rows(between(&page, "<table class=\"bench-matrix sortable\">", "</table>")).len(), 2 + 4);
}

#[test]
fn a_bench_works_in_a_browser() {
    let (bench, records) = rules();
    let hostile = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1200 300\" onload=\"init()\"><script><![CDATA[\n\
                   function init() { document.querySelector('rect').setAttribute('fill', 'rgb(0, 128, 0)');\n\
                   try { parent.document.title = 'reached'; } catch {} }\n\
                   ]]></script><rect width=\"1200\" height=\"300\" fill=\"red\"/></svg>";
    let flame_graphs = [FlameGraph { name: "10 rules".to_owned(), svg: hostile.to_owned() }];
    let contents =
        Contents { records: &records, benches: &[bench], flame_graphs: &flame_graphs, ..Contents::default() };
    let page = page_of(&contents, "Rules");
    assert!(
        page.contains("\"name\":\"none\",\"kind\":\"linux-router\""),
        "a device says what it is without its settings"
    );
    browse("bench.mjs", &page);
}

#[test]
fn a_device_s_nodes_have_a_table_load_by_load() {
    let (bench, records) = vectors();
    let benches = [bench];
    let contents = Contents { records: &records, benches: &benches, ..Contents::default() };
    let page = page_of(&contents, "Vectors");
    let table = rows(between(&page, "<table class=\"figures nodes\">", "</table>"));
    let found = report::bench::Bench::new(&benches[0], &records).unwrap();
    let terminal = report::terminal::bench(&found, false);
    let (_, terminal) = terminal.split_once("clocks by node, vpp").unwrap();
    let markdown = report::markdown::markdown(&records, &benches);
    let markdown = between(&markdown, "### Cost of a packet by node: vpp\n\n", "\n\n");
    insta::assert_snapshot!(format!("{}\n\n{terminal}\n{markdown}", table.join("\n")));
    browse("nodes.mjs", &page);
}

#[test]
fn five_hundred_runs_open_quickly() {
    let records: Vec<Record> = many(500).collect();
    let started = Instant::now();
    let page = page(&records, &[], "Many");
    eprintln!("built in {:.2} s, {:.1} MB", started.elapsed().as_secs_f64(), page.len() as f64 / 1e6);
    browse("speed.mjs", &page);
}

/// Adds a power that rises while the record's load does.
fn with_a_meter(record: &mut Record) {
    let reading = |at: usize| GaugeReading {
        at_s: at as f64,
        duration_s: 1.0,
        watts: Some(12.0 + at as f64 / 10.0),
        mhz: None,
        celsius: None,
    };
    record.gauges = Some(Box::new(Gauges { readings: (0..60).map(reading).collect(), ..Gauges::default() }));
}

/// Has the device of `record` forward half of what it did, from 2.6 million frames a second on.
fn collapse(record: &mut Record) {
    let directions = record.samples.iter_mut().flat_map(|sample| &mut sample.directions);
    directions.filter(|it| it.offered_pps > 2.6e6).for_each(|it| it.forwarded_pps /= 2.0);
}

#[test]
fn a_device_that_collapses_under_overload_says_so_beside_its_rate() {
    let mut records = bench();
    let words = "under overload (−";
    assert!(!page(&records, &[], "Two routers").contains(words));
    collapse(&mut records[7]);
    let page = page(&records, &[], "Two routers");
    let note = between(&page, "<small class=\"note\">", "</small>");
    assert!(note.starts_with("falls to 1.") && note.contains(words), "{note}");
    assert_eq!(page.matches("class=\"falls-to\"").count(), 2, "one bar, for a screen and for a phone");
}

#[test]
fn the_first_screen_says_what_stands_out_and_where_it_was_measured() {
    let page = page(&bench(), &[], "Two routers");
    let sentence = "The XDP router forwards 2.2 times what the kernel&#39;s router does at 64 bytes";
    assert_eq!(between(&page, "<h1>", "</h1>"), sentence);
    assert_eq!(between(&page, "<meta property=\"og:title\" content=\"", "\""), sentence);
    assert!(between(&page, "<meta property=\"og:description\" content=\"", "\"").contains("Max rate at"));
    let first = between(&page, "<section id=\"results\">", "</section>");
    for part in
        ["Example Processor 7", "generator (xdp)", "device and receiver share it", "Line rate: 2.50 Gbps"]
    {
        assert!(first.contains(part), "no {part}");
    }
    assert_eq!(first.matches("class=\"offered\" x=").count(), 2 * 16, "a bar for each result");
}

#[test]
fn the_page_works_in_a_browser() {
    let mut records = bench();
    collapse(&mut records[7]);
    records.iter_mut().for_each(with_a_meter);
    records.extend(oddities().into_iter().map(|mut record| {
        record.test = "64 B oddities".to_owned();
        record
    }));
    browse("browser.mjs", &page(&records, &[], "Two routers"));
}

#[test]
fn the_first_screen_is_photographed_for_the_documents() {
    let Some(chromium) = chromium() else {
        eprintln!("skipped: no chromium in $PATH (Debian's package chromium)");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("page.html");
    std::fs::write(&file, page(&bench(), &[], "Two routers")).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("page/screenshots.mjs");
    let output =
        Command::new("node").arg(script).arg(chromium).arg(&file).arg(directory.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for (width, height) in [(1280_u32, 900_u32), (800, 1100), (390, 844)] {
        for scheme in ["light", "dark"] {
            let name = format!("first-screen-{width}-{scheme}.png");
            let picture = std::fs::read(directory.path().join(&name)).unwrap();
            // Signature, then the header: width, height, eight bits of a palette.
            assert_eq!(&picture[1..4], b"PNG", "{name}");
            let size = [&picture[16..20], &picture[20..24]];
            assert_eq!(size, [width.to_be_bytes(), height.to_be_bytes()], "{name}");
            assert!(picture[25] == 3 && (10_000..150_000).contains(&picture.len()), "{name}");
        }
    }
}

#[test]
fn panels_work_in_a_browser() {
    let mut records = searches();
    // A repeat, and a ramp of the same test.
    records.push(Scenario { capacity_pps: 1_090_000.0, ..Scenario::default() }.search());
    records.push(Scenario::default().record());
    records.extend(others());
    records.extend([followed(true), followed(false)]);
    browse("panels.mjs", &page(&records, &[certificate()], "Two routers"));
}

/// Runs a script of `page/test` on `page`, in a browser. With LINERATE_PICTURES=1 it leaves pictures in `target/tmp`, which
/// take a third of the time and which only people look at.
fn browse(script: &str, page: &str) {
    let Some(chromium) = chromium() else {
        eprintln!("skipped: no chromium in $PATH (Debian's package chromium)");
        return;
    };
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let file = directory.join(script).with_extension("html");
    std::fs::write(&file, page).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("page/test").join(script);
    let pictures = std::env::var_os("LINERATE_PICTURES").map(|_| &directory);
    let output = Command::new("node").arg(script).arg(chromium).arg(&file).args(pictures).output().unwrap();
    eprint!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join("chromium")).find(|file| file.exists())
}
