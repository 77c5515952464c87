package command

// ExitError ends the program with the exit code of what it was about, such as a member.
type ExitError struct {
	Code int
	// Reason is the message for the user.
	Reason string
}

// Error returns the reason.
func (e *ExitError) Error() string { return e.Reason }
