package engine

// LogPlace is the position from which a member's log is read.
type LogPlace struct {
	// Mark is [LogPart.Next] of the previous call; empty for the first call.
	Mark string `json:"mark,omitempty"`
	// Run omits, if there is no mark yet, what was written before this run of the member. A member that has not reached
	// that run has written nothing.
	Run int `json:"run,omitempty"`
	// Rest also returns an unfinished last line.
	Rest bool `json:"rest,omitempty"`
}

// LogPart is a part of a log.
type LogPart struct {
	// Lines are whole lines, in the order in which they were written.
	Lines []string `json:"lines"`
	// Next is the mark after these lines. Only the engine that made it can read it.
	Next string `json:"next"`
	// More means that there is more to read right away.
	More bool `json:"more,omitempty"`
}
