package engine

// LogPlace is where reading a member's log goes on.
type LogPlace struct {
	// Mark is what the call before returned as [LogPart.Next]; empty for the first call.
	Mark string `json:"mark,omitempty"`
	// Run leaves out, where there is no mark yet, what was written before this run of the member. A member that has not
	// come to it yet has written nothing.
	Run int `json:"run,omitempty"`
	// Rest also returns a last line that has not ended.
	Rest bool `json:"rest,omitempty"`
}

// LogPart is a part of a log.
type LogPart struct {
	// Lines are whole lines, in the order in which they were written.
	Lines []string `json:"lines"`
	// Next is the mark behind them. Only the engine that made it can read it.
	Next string `json:"next"`
	// More tells that there is more to be read at once.
	More bool `json:"more,omitempty"`
}
