// Package patience holds the timeout for everything that tests wait for.
package patience

import "time"

// Limit is far longer than anything that a test waits for takes, even on a busy machine: only what hangs reaches it.
const Limit = 10 * time.Minute
