// Package sweep makes the decisions about the runs of sweeps: which start where, and why the others wait; what follows
// when one ends; and which restart when a sweep is changed. It is pure: the same input gives the same result, on every
// controller.
//
// To everything else, a run is an ordinary member: the only one of the role named by its key, in a group with the
// sweep's name ([GroupOf]). So topology renders it, placement finds room for it, and engines know nothing of sweeps.
package sweep
