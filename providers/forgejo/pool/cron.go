package pool

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A cron is when something starts, as in crontab(5): minute, hour, day of the month, month and day of the week, each a set of
// bits.
type cron struct {
	minute, hour, day, month, weekday uint64
	// anyDay and anyWeekday: where both are restricted one of them is enough.
	anyDay, anyWeekday bool
}

// A field of a cron.
type cronField struct {
	name     string
	low, top int
	words    []string
}

var cronFields = []cronField{
	{name: "minute", low: 0, top: 59},
	{name: "hour", low: 0, top: 23},
	{name: "day of the month", low: 1, top: 31},
	{name: "month", low: 1, top: 12, words: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{name: "day of the week", low: 0, top: 7, words: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// parseCron reads five fields, of which each is a list of *, numbers or names, ranges, and those with steps.
func parseCron(text string) (cron, error) {
	parts := strings.Fields(text)
	if len(parts) != len(cronFields) {
		return cron{}, fmt.Errorf("cannot read %q: it has %d fields, not minute, hour, day of the month, month and day of the week", text, len(parts))
	}
	var bits [5]uint64
	for n, f := range cronFields {
		b, err := f.parse(parts[n])
		if err != nil {
			return cron{}, fmt.Errorf("cannot read the %s of %q: %w", f.name, text, err)
		}
		bits[n] = b
	}
	// Sunday is 0 and 7.
	bits[4] |= bits[4] >> 7 & 1
	return cron{
		minute: bits[0], hour: bits[1], day: bits[2], month: bits[3], weekday: bits[4],
		anyDay: strings.HasPrefix(parts[2], "*"), anyWeekday: strings.HasPrefix(parts[4], "*"),
	}, nil
}

// parse a list.
func (f cronField) parse(list string) (uint64, error) {
	var bits uint64
	for part := range strings.SplitSeq(list, ",") {
		of, stepped, hasStep := strings.Cut(part, "/")
		step := 1
		if hasStep {
			var err error
			if step, err = strconv.Atoi(stepped); err != nil || step < 1 {
				return 0, fmt.Errorf("%q is not a step", stepped)
			}
		}
		from, to, err := f.span(of, hasStep)
		if err != nil {
			return 0, err
		}
		for n := from; n <= to; n += step {
			bits |= 1 << n
		}
	}
	return bits, nil
}

// span of *, of one value, or of a range. With a step, one value is where it begins.
func (f cronField) span(of string, open bool) (from, to int, err error) {
	if of == "*" {
		return f.low, f.top, nil
	}
	first, last, ranged := strings.Cut(of, "-")
	if from, err = f.value(first); err != nil {
		return 0, 0, err
	}
	switch {
	case ranged:
		to, err = f.value(last)
	case open:
		to = f.top
	default:
		to = from
	}
	if err == nil && from > to {
		err = fmt.Errorf("%q ends before it begins", of)
	}
	return from, to, err
}

func (f cronField) value(text string) (int, error) {
	for n, w := range f.words {
		if strings.EqualFold(text, w) {
			return f.low + n, nil
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < f.low || n > f.top {
		return 0, fmt.Errorf("%q is not from %d to %d", text, f.low, f.top)
	}
	return n, nil
}

// starts reports whether something starts in the minute of t, by its own time zone.
func (c cron) starts(t time.Time) bool {
	has := func(bits uint64, n int) bool { return bits>>n&1 == 1 }
	day, weekday := has(c.day, t.Day()), has(c.weekday, int(t.Weekday()))
	onDay := day && weekday
	if !c.anyDay && !c.anyWeekday {
		onDay = day || weekday
	}
	return onDay && has(c.minute, t.Minute()) && has(c.hour, t.Hour()) && has(c.month, int(t.Month()))
}

// startedWithin reports whether something started in the time before t, the minute of t included.
func (c cron) startedWithin(before time.Duration, t time.Time) bool {
	for m := t.Truncate(time.Minute); t.Sub(m) < before; m = m.Add(-time.Minute) {
		if c.starts(m) {
			return true
		}
	}
	return false
}
