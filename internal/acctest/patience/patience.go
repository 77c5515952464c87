// Package patience holds the timeout for everything that tests wait for.
package patience

import "time"

// Limit is far longer than anything takes that a test waits for, on a machine that is busy with other things as well:
// only what hangs runs into it.
const Limit = 10 * time.Minute
