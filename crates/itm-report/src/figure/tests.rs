use super::*;

fn sound(figure: Option<Figure>) -> String {
    let svg = figure.expect("a figure").svg.into_string();
    assert!(!svg.contains("NaN") && !svg.contains("inf") && !svg.contains("#FE"), "{svg}");
    for element in svg.split('<') {
        assert!(element.matches("style=").count() <= 1, "{element}");
        // A point that overflowed the integers of the canvas would be far outside.
        let numbers = element.split(|c: char| !c.is_ascii_digit());
        for n in numbers.filter(|n| !n.is_empty() && !element.starts_with("text")) {
            assert!(n.len() <= 5, "{element}");
        }
    }
    svg
}

fn line(points: &[Point]) -> Option<Figure> {
    courses(
        "loss",
        ["epochs", "mean loss"],
        &[Course::new("Full", Ink::dashed(0), points.into())],
        &[],
    )
}

fn estimate(value: f64) -> Estimate {
    let interval = Some([value - 3.0, value + 3.0]);
    Estimate { name: "Full".into(), series: 3, value, interval, parts: vec![value - 1.0, f64::NAN] }
}

fn bars(value: f64) -> RecallBars {
    let intervals = Some([[value; 2]; 3]);
    RecallBars { name: "Full".into(), series: 0, values: [value; 3], intervals }
}

#[test]
fn nothing_to_draw_is_no_figure() {
    assert!(courses("x", [""; 2], &[], &[]).is_none());
    assert!(line(&[(1.0, f64::NAN)]).is_none());
    assert!(line(&[(1.0, -1e308), (2.0, 1e308)]).is_none());
    assert!(estimates("x", "", &[], None).is_none());
    assert!(estimates("x", "", &[estimate(f64::NAN)], None).is_none());
    assert!(recalls("x", &[]).is_none());
}

#[test]
fn odd_data_draws_soundly() {
    sound(line(&[(1.0, 0.5)]));
    sound(line(&[(1.0, 0.0), (2.0, 0.0)]));
    sound(line(&[(1.0, f64::NAN), (2.0, 3.0), (3.0, f64::INFINITY)]));
    sound(line(&[(1.0, 1e30), (2.0, 1.0)]));
    sound(line(&[(1.0, 1e12), (2.0, -1e12)]));
    sound(line(&[(1.0, 1e12), (2.0, 1e12 + 1.0)]));
    sound(line(&[(1.0, 1e-12), (2.0, 2e-12)]));
    sound(recalls("b", &[bars(0.0), bars(f64::NAN), bars(100.0)]));
    sound(estimates("e", "rSum", &[estimate(300.0), estimate(f64::NAN)], Some(310.0)));
}

#[test]
fn a_line_a_dot_each_and_a_bar() {
    let points = vec![(1.0, 2.0), (2.0, 3.0), (2.5, f64::NAN), (4.0, 3.5)];
    let intervals = vec![(2.0, [1.0, 5.0])];
    let thin = vec![vec![(1.0, 2.0), (4.0, 3.0)]];
    let course = Course { intervals, thin, ..Course::new("a", Ink::dashed(2), points).dotted(9) };
    let level = (Ink::level(6), 4.0);
    let figure = courses("rSum", ["batch", "rSum"], &[course], &[level]).unwrap();
    assert_eq!(figure.legend.len(), 1);
    let svg = sound(Some(figure));
    assert_eq!(svg.matches("<circle").count(), 3);
    let lines = |colour: &str| {
        let all = svg.split('<').filter(|e| e.starts_with("polyline"));
        all.filter(|e| e.contains(colour)).count()
    };
    assert_eq!([lines("--s2"), lines("--s6)")], [3, 1], "{svg}");
    assert_eq!(svg.matches("stroke-dasharray:14 12").count(), 1);
}

/// One point makes no line.
#[test]
fn a_lone_point_is_a_dot() {
    assert_eq!(sound(line(&[(1.0, 0.5), (2.0, f64::NAN)])).matches("<circle").count(), 1);
    assert_eq!(sound(line(&[(1.0, 0.5), (2.0, 0.5)])).matches("<circle").count(), 0);
}

/// Each row makes the figure higher, so a name never covers the mark of the row above.
#[test]
fn each_row_has_its_height() {
    let height = |n: usize| -> u32 {
        let svg = estimates("rSum", "rSum", &vec![estimate(300.0); n], None).unwrap().svg;
        svg.0.split('"').nth(1).unwrap().split(' ').nth(3).unwrap().parse().unwrap()
    };
    assert_eq!([height(1), height(6), height(12)], [242, 802, 1474]);
}

#[test]
fn an_interval_reaches_from_low_to_high() {
    let rows = [estimate(300.0)];
    let svg = estimates("rSum", "rSum", &rows, Some(298.0)).unwrap().svg.into_string();
    let lines = |colour: &str| -> Vec<Vec<i32>> {
        let lines = svg.split('<').filter(|e| e.starts_with("polyline") && e.contains(colour));
        let points = lines.map(|line| line.split("points=\"").nth(1).unwrap().split('"').next());
        points
            .map(|p| p.unwrap().split([',', ' ']).filter_map(|n| n.parse().ok()).collect())
            .collect()
    };
    let dot = svg.split('<').find(|e| e.starts_with("circle")).unwrap();
    let middle: i32 = dot.split('"').nth(1).unwrap().parse().unwrap();
    let [xy] = &lines("--s3")[..] else { panic!("one interval: {svg}") };
    assert!(xy[0] + 100 < middle && middle + 100 < xy[2] && xy[1] == xy[3], "{xy:?}, {middle}");
    let [level] = &lines("--s6")[..] else { panic!("one level: {svg}") };
    assert!(level[0] == level[2] && level[0] < middle, "{level:?}");
}

/// A bar of 50 % is half as wide as a bar of 100 %.
#[test]
fn bars_are_as_long_as_their_values() {
    let row = RecallBars { values: [50.0, 100.0, f64::NAN], intervals: None, ..bars(0.0) };
    let figure = recalls("b", &[row]).unwrap();
    assert_eq!(figure.legend.len(), 3);
    let svg = figure.svg.into_string();
    let bars: Vec<Vec<i32>> = (svg.split("<polygon").skip(1))
        .map(|bar| bar.split("points=\"").nth(1).unwrap().split('"').next().unwrap())
        .map(|points| points.split([',', ' ']).filter_map(|n| n.parse().ok()).collect())
        .collect();
    let width = |bar: &Vec<i32>| f64::from(bar[2] - bar[0]);
    assert_eq!(bars.len(), 2, "{svg}");
    assert!((width(&bars[1]) / width(&bars[0]) - 2.0).abs() < 0.01, "{bars:?}");
}

#[test]
fn a_legend_has_the_shape_of_its_marks() {
    let ink = Ink::dashed(1);
    let markup = |key: Key| key.markup().into_string();
    let line = markup(Key::new("<a>", Shape::Line, ink));
    assert!(line.contains("stroke:var(--s1);stroke-dasharray:24 10;stroke-width:12"), "{line}");
    assert!(line.contains("&lt;a&gt;</span>"));
    assert!(
        markup(Key::new("a", Shape::Area, Ink::solid(2).faint(0.3)))
            .contains("fill:var(--s2);fill-opacity:0.3")
    );
    assert!(markup(Key::new("a", Shape::Dot, Ink::solid(2))).contains("<circle"));
}
