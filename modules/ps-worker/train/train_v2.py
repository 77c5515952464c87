"""Asynchronous training with TensorFlow 2's ParameterServerStrategy.

TF_CONFIG lists the members; BATCH_SIZE, LEARNING_RATE, HIDDEN_UNITS and TRAIN_STEPS (0: no end) control the training;
LOG_DIR is the folder for checkpoints and summaries, written every SAVE_EVERY seconds. The chief hands out the steps,
and its log is JSON lines, one about every SAY_EVERY seconds.
"""

import json
import os
import time

import tensorflow as tf

import data

EVALUATED = 2000
ROUND = 20  # steps of the first round


def say(**fields):
    # In a single write: libraries write to the same log.
    print(json.dumps(fields) + "\n", end="", flush=True)


class Model(tf.Module):
    """A network with one hidden layer, and its optimizer Adam: Keras 3 has none for parameter servers."""

    def __init__(self, strategy, hidden_units, learning_rate):
        super().__init__()
        self.learning_rate = learning_rate
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.parameters = []
        for fan_in, units in ((data.PIXELS, hidden_units), (hidden_units, data.CLASSES)):
            self.parameters.append(tf.Variable(tf.random.truncated_normal([fan_in, units], stddev=fan_in**-0.5)))
            self.parameters.append(tf.Variable(tf.zeros([units])))
        self.moments = []
        for parameter in self.parameters:
            with strategy.extended.colocate_vars_with(parameter):  # the parameter server updates all three at once
                self.moments.append([tf.Variable(tf.zeros_like(parameter), trainable=False) for _ in range(2)])

    def __call__(self, images):
        kernel1, bias1, kernel2, bias2 = self.parameters
        return tf.matmul(tf.nn.relu(tf.matmul(images, kernel1) + bias1), kernel2) + bias2

    def train(self, images, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=self(images)))
        gradients = tape.gradient(loss, self.parameters)
        turn = tf.cast(self.step.assign_add(1), tf.float32)
        for parameter, (m, v), gradient in zip(self.parameters, self.moments, gradients):
            tf.raw_ops.ResourceApplyAdam(
                var=parameter.handle, m=m.handle, v=v.handle, grad=gradient, lr=self.learning_rate,
                beta1=0.9, beta2=0.999, beta1_power=0.9**turn, beta2_power=0.999**turn, epsilon=1e-8,
            )
        return loss

    def accuracy(self):
        images, labels = data.batch([0, 0], EVALUATED)
        guesses = tf.argmax(self(images), 1, output_type=tf.int32)
        return tf.reduce_mean(tf.cast(tf.equal(guesses, labels), tf.float32))


def summary(**values):
    """Returns values for TensorBoard. tf.summary.scalar fails if it isn't installed, as it isn't with TensorFlow."""
    scalars = [tf.compat.v1.Summary.Value(tag=name, simple_value=value) for name, value in values.items()]
    return tf.compat.v1.Summary(value=scalars).SerializeToString()


def coordinate(resolver):
    train_steps = int(os.environ["TRAIN_STEPS"])
    batch_size = int(os.environ["BATCH_SIZE"])
    folder = os.environ.get("LOG_DIR")
    say_every = float(os.environ.get("SAY_EVERY", "1"))
    save_every = float(os.environ.get("SAVE_EVERY", "30"))

    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        model = Model(strategy, int(os.environ["HIDDEN_UNITS"]), float(os.environ["LEARNING_RATE"]))

    saved = summaries = None
    if folder:
        saved = tf.train.CheckpointManager(tf.train.Checkpoint(model=model), folder, max_to_keep=3)
        saved.restore_or_initialize()
        summaries = tf.summary.create_file_writer(folder)

    @tf.function
    def train(turn):
        return strategy.run(lambda turn: model.train(*data.batch(tf.stack([1, turn]), batch_size)), args=(turn,))

    # Steps are handed out in rounds, one per log line: whichever worker is ready takes the next step.
    round_steps = ROUND
    first, last_save = None, time.time()
    done = int(model.step.numpy())
    while train_steps == 0 or done < train_steps:
        begin = time.time()
        count = round_steps if train_steps == 0 else min(round_steps, train_steps - done)
        turns = [tf.constant(turn, tf.int32) for turn in range(done, done + count)]
        losses = [coordinator.schedule(train, args=(turn,)) for turn in turns]
        coordinator.join()
        done = int(model.step.numpy())
        loss = float(losses[-1].fetch())
        now = time.time()
        say(step=done, loss=round(loss, 4), time=round(now, 2))
        if first:  # the first round traces all functions, so it doesn't show how long a step takes
            round_steps = max(1, round(count * say_every / (now - begin)))
        first = first or now
        if saved and now - last_save > save_every:
            saved.save(done)
            last_save = now
        if summaries:
            with summaries.as_default():
                tf.summary.experimental.write_raw_pb(summary(loss=loss), step=done)

    if saved:
        saved.save(done)
    now = time.time()
    accuracy = float(model.accuracy().numpy())
    say(
        step=done, accuracy=round(accuracy, 4), examples=EVALUATED, seconds=round(now - (first or now), 1),
        time=round(now, 2),
    )


def main():
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type == "chief":
        coordinate(resolver)
        return
    place = {"job_name": resolver.task_type, "task_index": resolver.task_id}
    server = tf.distribute.Server(resolver.cluster_spec(), protocol="grpc", **place)
    server.join()  # never returns


if __name__ == "__main__":
    main()
