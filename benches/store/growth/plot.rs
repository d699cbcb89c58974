//! The plots: times at the left, bytes at the right, over the number of entries, both axes logarithmic.

use std::error::Error;
use std::ops::Range;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::measured::{MEASURED, Measured};

const COLORS: [RGBColor; 6] = [
    RGBColor(31, 119, 180),
    RGBColor(44, 160, 44),
    RGBColor(214, 39, 40),
    RGBColor(148, 103, 189),
    RGBColor(140, 86, 75),
    RGBColor(255, 127, 14),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

pub fn write(path: &Path, measured: &[Measured]) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::new(path, (1100, 460)).into_drawing_area();
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(550);
    draw(
        &left,
        measured,
        "ns",
        "nanoseconds for each entry",
        1.0..1_000_000.0,
    )?;
    draw(
        &right,
        measured,
        "bytes",
        "bytes for each entry",
        10.0..100_000.0,
    )?;
    root.present()?;
    Ok(())
}

fn draw(
    area: &Area<'_>,
    measured: &[Measured],
    unit: &str,
    title: &str,
    range: Range<f64>,
) -> Result<(), Box<dyn Error>> {
    let largest = measured.last().map_or(0, |of| of.entries) as f64;
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d((1000.0..largest).log_scale(), range.log_scale())?;
    let power = |value: &f64| format!("{value:e}");
    let mut mesh = chart.configure_mesh();
    mesh.x_desc("entries")
        .y_desc(unit)
        .max_light_lines(0)
        .x_labels(5)
        .x_label_formatter(&power)
        .y_label_formatter(&power)
        .draw()?;
    let shown = MEASURED
        .iter()
        .enumerate()
        .filter(|(_, (_, of))| *of == unit);
    for ((at, (what, _)), color) in shown.zip(COLORS) {
        let points = measured.iter().map(|of| (of.entries as f64, of.values[at]));
        let points: Vec<_> = points.collect();
        let line = LineSeries::new(points.clone(), color.stroke_width(2));
        let key = move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2));
        chart.draw_series(line)?.label(*what).legend(key);
        chart.draw_series(
            points
                .into_iter()
                .map(|point| Circle::new(point, 3, color.filled())),
        )?;
    }
    let mut labels = chart.configure_series_labels();
    labels
        .position(SeriesLabelPosition::UpperRight)
        .border_style(BLACK.mix(0.3))
        .background_style(WHITE)
        .draw()?;
    Ok(())
}
