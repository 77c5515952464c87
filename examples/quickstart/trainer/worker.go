package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
)

// train is what a worker or chief does: it waits for the parameter servers, runs its steps, and, if it leads, evaluates
// and saves the model. A restarted worker continues from the current parameters. Training without end returns nil when
// ctx ends; other training returns errInterrupted.
func train(ctx context.Context, task task, opts options, data dataset, log *slog.Logger) error {
	trainers := len(task.trainers())
	if len(data.training) < trainers || len(data.heldOut) == 0 {
		return fmt.Errorf("%d images are too few for %d workers and an evaluation",
			len(data.training)+len(data.heldOut), trainers)
	}
	client := newParameterClient(task.servers(), opts.patience, log)
	defer client.close()

	err := trainSteps(ctx, client, newSampler(data.training, task.trainer(), trainers, opts.seed), opts, log)
	if err == nil && task.leads() {
		err = conclude(ctx, client, opts, data.heldOut, log)
	}
	switch {
	case !errors.Is(err, context.Canceled):
		return err
	case opts.steps == 0:
		log.Info("stopped")
		return nil
	default:
		return errInterrupted
	}
}

// trainAlone is a whole cluster in one process: a parameter server on the loopback interface, and its one worker.
func trainAlone(ctx context.Context, opts options, data dataset, log *slog.Logger) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("cannot serve parameters on this machine: %w", err)
	}
	address := listener.Addr().String()
	alone := task{Type: taskWorker, cluster: map[string][]string{taskPS: {address}, taskWorker: {address}}}

	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() {
		served <- serve(serving, listener, newParameterServer(shardOf(parameterCount, 0, 1), opts),
			slog.New(slog.DiscardHandler))
	}()
	err = train(ctx, alone, opts, data, log)
	stop()
	return errors.Join(err, <-served)
}

// trainSteps pulls, computes and pushes for each mini-batch. Progress lines give the mean since the last one.
func trainSteps(
	ctx context.Context, client *parameterClient, samples *sampler, opts options, log *slog.Logger,
) error {
	parameters, gradient := make([]float64, parameterCount), make([]float64, parameterCount)
	batch := make([]*digit, opts.batchSize)
	var recent score
	for step := 1; opts.steps == 0 || step <= opts.steps; step++ {
		if err := client.pull(ctx, parameters); err != nil {
			return err
		}
		samples.fill(batch)
		recent.merge(computeGradient(parameters, batch, gradient))
		if loss := recent.meanLoss(); math.IsNaN(loss) || math.IsInf(loss, 0) {
			return fmt.Errorf("the loss is %g at step %d: lower -learning-rate, which is %g", loss, step,
				opts.learningRate)
		}
		if err := client.push(ctx, gradient); err != nil {
			return err
		}
		if step%opts.logEvery == 0 || step == opts.steps {
			log.Info("progress", "step", step, "loss", rounded(recent.meanLoss()), "accuracy",
				rounded(recent.accuracy()))
			recent = score{}
		}
		if opts.stepInterval > 0 {
			if err := pause(ctx, opts.stepInterval); err != nil {
				return err
			}
		}
	}
	return nil
}

// conclude evaluates the parameters on the held-out digits, and saves them if asked to.
func conclude(
	ctx context.Context, client *parameterClient, opts options, heldOut []digit, log *slog.Logger,
) error {
	parameters := make([]float64, parameterCount)
	if err := client.pull(ctx, parameters); err != nil {
		return err
	}
	result := evaluate(parameters, heldOut)
	if opts.modelDir != "" {
		path, err := saveModel(opts.modelDir, parameters, result.accuracy())
		if err != nil {
			return err
		}
		log.Info("saved", "path", path)
	}
	log.Info("evaluation", "step", opts.steps, "loss", rounded(result.meanLoss()),
		"accuracy", rounded(result.accuracy()), "examples", result.digits)
	return nil
}

// rounded rounds to the four decimals that are useful in a log.
func rounded(value float64) float64 { return math.Round(value*1e4) / 1e4 }
