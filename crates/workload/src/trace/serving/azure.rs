//! LLM inference traces of Azure: arrivals and token counts, without the contents of prompts.

use super::{FormatFacts, RawServing, ServingEntry, ServingEvent, ServingParser, first_line};
use crate::trace::number;
use hybridsim_config::param::Settings;
use hybridsim_config::registry::Description;

pub(super) const ENTRY: ServingEntry = ServingEntry {
    description: Description {
        name: "azure-llm",
        summary: "LLM inference traces of Azure, 2023 and 2024: arrivals and token counts",
        origin: "Patel et al., ISCA 2024; Stojkovic et al., HPCA 2025; AzurePublicDataset",
        params: &[],
    },
    sniff: |head| first_line(head) == HEADER,
    parser: |_: &Settings| Box::new(Azure),
    sample: b"TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,4808,10
2024-05-10 00:00:00.009930+00:00,2162,5
",
};

const HEADER: &[u8] = b"TIMESTAMP,ContextTokens,GeneratedTokens";

struct Azure;

impl ServingParser for Azure {
    fn facts(&self) -> FormatFacts {
        FormatFacts {
            block_tokens: Some(1),
            has_output: true,
            has_blocks: false,
            whole_prompts: true,
        }
    }

    fn parse(&mut self, line: &[u8], events: &mut Vec<ServingEvent>) -> Result<(), String> {
        if line == HEADER {
            return Ok(());
        }
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).collect();
        let [time, input, output] = fields[..] else {
            return Err("has not the columns TIMESTAMP, ContextTokens, GeneratedTokens".to_owned());
        };
        let whole = |text: &[u8], column: &str| {
            number::whole(text).map_err(|error| format!("{column} {}", error.problem()))
        };
        events.push(ServingEvent::Request(RawServing {
            time_ns: time_ns(time).ok_or("TIMESTAMP is no date and time since 1970")?,
            input_tokens: whole(input, "ContextTokens")?,
            output_tokens: whole(output, "GeneratedTokens")?,
            ..RawServing::default()
        }));
        Ok(())
    }
}

/// Nanoseconds since 1970 of a date such as `2024-05-10 00:00:00.009930+00:00`.
fn time_ns(text: &[u8]) -> Option<u64> {
    let (date, clock) = text.split_at_checked(10)?;
    let [b' ' | b'T', clock @ ..] = clock else { return None };
    let two = |from: usize, bytes: &[u8]| number::whole(bytes.get(from..from + 2)?).ok();
    let is = |at: usize, bytes: &[u8], byte: u8| bytes.get(at) == Some(&byte);
    if ![4, 7].iter().all(|&at| is(at, date, b'-')) || ![2, 5].iter().all(|&at| is(at, clock, b':'))
    {
        return None;
    }
    let year = number::whole(&date[..4]).ok()?;
    let days = days_since_1970(year, two(5, date)?, two(8, date)?)?;
    let (hours, minutes) = (two(0, clock)?, two(3, clock)?);
    let rest = clock.get(6..)?;
    let zone =
        rest.iter().position(|byte| matches!(byte, b'+' | b'-' | b'Z')).unwrap_or(rest.len());
    let (seconds, zone) = rest.split_at(zone);
    let ns = number::scaled(seconds, 9).ok()?;
    if hours > 23 || minutes > 59 || ns >= 61_000_000_000 {
        return None;
    }
    let minutes = (days * 24 + hours) * 60 + minutes;
    let minutes = match zone {
        [] | [b'Z'] => minutes,
        [sign, zone @ ..] if zone.len() == 5 && zone[2] == b':' => {
            let offset = two(0, zone)? * 60 + two(3, zone)?;
            if *sign == b'+' { minutes.checked_sub(offset)? } else { minutes + offset }
        }
        _ => return None,
    };
    (minutes * 60).checked_mul(1_000_000_000)?.checked_add(ns)
}

/// Days from 1 January 1970 to a date of the Gregorian calendar.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..2500).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let february = if leap(year) { 29 } else { 28 };
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let before = &months[..month as usize - 1];
    if day == 0 || day > months[month as usize - 1] {
        return None;
    }
    let years: u64 = (1970..year).map(|year| if leap(year) { 366 } else { 365 }).sum();
    Some(years + before.iter().sum::<u64>() + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_both_releases() {
        let seconds = |text: &str| time_ns(text.as_bytes()).map(|ns| ns / 1_000_000_000);
        assert_eq!(seconds("1970-01-02 00:00:01"), Some(86_401));
        assert_eq!(seconds("2023-11-16 18:17:03.9799600"), Some(1_700_158_623));
        assert_eq!(seconds("2024-05-10 00:00:00.009930+00:00"), Some(1_715_299_200));
        assert_eq!(seconds("2024-05-10 02:00:00+02:00"), Some(1_715_299_200));
        let wrong =
            ["2023-02-29 00:00:00", "2023-11-16", "2023-11-16 25:00:00", "x", "2023-11-16 "];
        for text in wrong {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
