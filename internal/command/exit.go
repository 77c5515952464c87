package command

// ExitError ends the program with the exit code of something that it was about.
type ExitError struct {
	Code int
	// Reason is said to people.
	Reason string
}

// Error says the reason.
func (e *ExitError) Error() string { return e.Reason }
