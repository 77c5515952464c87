// Package sweep decides about the runs of sweeps: which of them start where, and why the others wait; what becomes of
// one that ended; and which start anew once a sweep was changed. It is pure: the same input gives the same result, on
// every controller.
//
// To everything else a run is a member like others: the only one of the role of its key, in a group of the sweep's name
// ([GroupOf]). So topology renders it, placement finds room for it, and engines know nothing of sweeps.
package sweep
