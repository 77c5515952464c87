#!/usr/bin/env python3
"""Optuna asks, Trainyard runs: each trial of the study is a run of the sweep in main.tf.

The study is stored in study.db, and the runs are made from it, so the script can be interrupted and restarted.
"""

import argparse
import json
import os
import pathlib
import subprocess
import time

import optuna
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import TrialState

FOLDER = pathlib.Path(__file__).resolve().parent
TERRAFORM = os.environ.get("TF", "terraform")

# The parameters become environment variables of the runs.
SPACE = {
    "LR": FloatDistribution(1e-3, 10, log=True),
    "BATCH": IntDistribution(8, 128, log=True),
}


def key(trial):
    return f"trial-{trial.number:04}"  # runs start in the order of their keys


def unfinished(study):
    return study.get_trials(states=(TrialState.RUNNING,))


def apply(study):
    """Applies a sweep with all trials of the study, and returns the state of its runs."""
    runs = {key(trial): trial.params for trial in study.trials}
    (FOLDER / "runs.auto.tfvars.json").write_text(json.dumps({"runs": runs}, indent=2) + "\n")
    terraform("apply", "-auto-approve", "-input=false", "-no-color")
    return json.loads(terraform("output", "-json", "results"))


def terraform(*args):
    done = subprocess.run([TERRAFORM, *args], cwd=FOLDER, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stdout)
    return done.stdout


def tell(study, trial, run):
    """Reports an ended run to the study."""
    if run["state"] in ("queued", "running", "paused"):
        return
    if run["value"] is None or run["state"] != "succeeded":
        study.tell(trial.number, state=TrialState.FAIL)
    else:
        study.tell(trial.number, run["value"])
    print(f"{key(trial)} {run['state']:14} {run['value']}  {trial.params}  {run['reason'] or ''}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=30, help="trials of the study in all (default: 30)")
    parser.add_argument("--open", type=int, default=4, help="trials that are asked for ahead of their results (default: 4)")
    args = parser.parse_args()

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        study_name="digits",
        direction="maximize",
        storage=f"sqlite:///{FOLDER}/study.db",
        load_if_exists=True,
        sampler=optuna.samplers.TPESampler(constant_liar=True),  # for parallel trials
    )
    while True:
        for _ in range(min(args.open - len(unfinished(study)), args.trials - len(study.trials))):
            study.ask(SPACE)
        if not unfinished(study):
            break
        results = apply(study)
        for trial in unfinished(study):
            tell(study, trial, results[key(trial)])
        time.sleep(1)
    print(f"best: {key(study.best_trial)}, accuracy {study.best_value}, {study.best_params}")


if __name__ == "__main__":
    main()
