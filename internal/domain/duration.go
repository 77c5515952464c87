package domain

import "time"

// Duration is a time.Duration that documents hold as text, such as "30s".
type Duration time.Duration

// MarshalText formats the duration as time.Duration.String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration accepts.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err
}

// String formats the duration as time.Duration.String does.
func (d Duration) String() string { return time.Duration(d).String() }

// Or returns the duration, or otherwise if d is nil.
func (d *Duration) Or(otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	return time.Duration(*d)
}
