"""Synchronous training with MultiWorkerMirroredStrategy: all take each step together, and have the same weights.

TF_CONFIG lists the workers; BATCH_SIZE (per worker), EPOCHS, STEPS_PER_EPOCH, LEARNING_RATE and SEED control the
training; JOIN_TIMEOUT is how long to wait for the others. Only worker 0 reads and writes files: INITIAL_MODEL,
checkpoints and summaries in LOG_DIR, and the trained model in MODEL_DIR. The log is JSON lines.

Keras 3 has no `fit` for several workers: the loop is TensorFlow's own, the model and its optimizer are from Keras.
"""

import json
import os
import socket
import time
import zlib

import members

started = time.monotonic()
rank, addresses = members.task()
watch = members.Watch(rank, addresses, os.environ["JOIN_TIMEOUT"])  # before TensorFlow is loaded, which starts threads

import tensorflow as tf  # noqa: E402
from tensorflow import keras  # noqa: E402

import data  # noqa: E402

EVALUATED = 1000


def join(addresses):
    """Returns the strategy once all workers have joined."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    # Its first reduction needs all workers.
    ones = strategy.experimental_distribute_values_from_function(lambda _: tf.constant(1))
    joined = int(strategy.reduce("SUM", ones, axis=None))
    if joined != len(addresses) or strategy.num_replicas_in_sync != joined:
        members.fail(1, f"{joined} workers joined, and {len(addresses)} have to take part")
    return strategy


class Training:
    """The model, its optimizer, and a step of all workers."""

    def __init__(self, strategy, batch_size):
        self.strategy, self.batch_size = strategy, batch_size
        with strategy.scope():
            self.model = keras.Sequential([
                keras.layers.Input((28, 28, 1)),
                keras.layers.Conv2D(32, 3, activation="relu"),
                keras.layers.Flatten(),
                keras.layers.Dense(128, activation="relu"),
                keras.layers.Dense(data.CLASSES),
            ])
            self.optimizer = keras.optimizers.SGD(float(os.environ["LEARNING_RATE"]), momentum=0.9)
            self.optimizer.build(self.model.trainable_variables)

    def done(self):
        return int(self.optimizer.iterations.numpy())

    def share(self):
        """Copies worker 0's variables to all workers: in the sum, the others are zero."""
        first = self.strategy.cluster_resolver.task_id == 0
        for variable in self.model.variables + self.optimizer.variables:
            own = tf.convert_to_tensor(variable.value) if first else tf.zeros(variable.shape, variable.dtype)
            values = self.strategy.experimental_distribute_values_from_function(lambda _, own=own: own)
            variable.assign(self.strategy.reduce("SUM", values, axis=None))

    def batches(self, first, last):
        """Yields each worker's own batches for these steps."""

        def own(context):
            worker = context.input_pipeline_id
            steps = tf.data.Dataset.range(first, last, output_type=tf.int32)
            return steps.map(lambda step: data.batch(tf.stack([worker + 1, step]), self.batch_size)).prefetch(2)

        return iter(self.strategy.distribute_datasets_from_function(own))

    def replica(self, images, labels):
        with tf.GradientTape() as tape:
            logits = self.model(shaped(images), training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            # The gradients of all workers are summed up: the sum is that of the mean over all examples.
            loss = tf.reduce_mean(losses) / self.strategy.num_replicas_in_sync
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        return tf.stack([loss, hits(logits, labels) / self.strategy.num_replicas_in_sync])

    @tf.function
    def step(self, images, labels):
        """Returns loss and accuracy over the batches of all workers."""
        return self.strategy.reduce("SUM", self.strategy.run(self.replica, args=(images, labels)), axis=None)

    def evaluate(self):
        """Returns the accuracy on examples that no worker has trained on."""
        images, labels = data.batch([0, 0], EVALUATED)
        return float(hits(self.model(shaped(images)), labels))

    def checksum(self):
        return zlib.crc32(b"".join(weights.tobytes() for weights in self.model.get_weights()))


def shaped(images):
    return tf.reshape(images, [-1, 28, 28, 1])


def hits(logits, labels):
    return tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels), tf.float32))


def summary(**values):
    """Returns values for TensorBoard. tf.summary.scalar fails if it isn't installed, as it isn't with TensorFlow."""
    scalars = [tf.compat.v1.Summary.Value(tag=name, simple_value=value) for name, value in values.items()]
    return tf.compat.v1.Summary(value=scalars).SerializeToString()


class Files:
    """The files of worker 0. The others have none, so no storage has to be shared."""

    def __init__(self, training):
        self.training = training
        self.model_dir, self.initial = os.environ.get("MODEL_DIR"), os.environ.get("INITIAL_MODEL")
        self.checkpoints = self.summaries = None
        folder = os.environ.get("LOG_DIR")
        if folder:
            state = tf.train.Checkpoint(model=training.model, optimizer=training.optimizer)
            self.checkpoints = tf.train.CheckpointManager(state, folder, max_to_keep=2)
            self.summaries = tf.summary.create_file_writer(folder)

    def load(self):
        """Reads the last checkpoint or, if there is none yet, the initial model. Returns the path that it has read."""
        if self.checkpoints and self.checkpoints.latest_checkpoint:
            return self.checkpoints.restore_or_initialize()
        if self.initial:
            try:
                self.training.model.set_weights(keras.models.load_model(self.initial, compile=False).get_weights())
            except (OSError, ValueError) as problem:
                members.fail(members.USAGE, f"the initial model {self.initial} can't be gone on with: {problem}")
        return self.initial

    def save(self, epoch, loss, accuracy):
        if self.checkpoints:
            self.checkpoints.save(self.training.done())
            with self.summaries.as_default():
                tf.summary.experimental.write_raw_pb(summary(loss=loss, accuracy=accuracy), step=epoch)
            self.summaries.flush()

    def finish(self):
        if self.model_dir:
            os.makedirs(self.model_dir, exist_ok=True)
            part = os.path.join(self.model_dir, f".{os.getpid()}.keras")
            self.training.model.save(part)
            os.replace(part, os.path.join(self.model_dir, "model.keras"))  # readers never see half a model


def say(event, **fields):
    # In a single write: libraries write to the same log.
    print(json.dumps({"event": event, "rank": rank, "world_size": len(addresses), **fields}) + "\n", end="", flush=True)


def main():
    if os.environ.get("SEED"):
        keras.utils.set_random_seed(int(os.environ["SEED"]))
        tf.config.experimental.enable_op_determinism()
    epochs, steps = int(os.environ["EPOCHS"]), int(os.environ["STEPS_PER_EPOCH"])

    strategy = join(addresses)
    watch.over()
    training = Training(strategy, int(os.environ["BATCH_SIZE"]))
    files = Files(training) if rank == 0 else None
    start = files.load() if files else None
    training.optimizer.learning_rate = float(os.environ["LEARNING_RATE"])  # a checkpoint has its own
    training.share()
    origin = {"start": start} if start else {}
    took = round(time.monotonic() - started, 3)
    say("joined", step=training.done(), host=socket.gethostname(), seconds=took, **origin)

    loss = begin = None
    batches = training.batches(training.done(), epochs * steps)
    for epoch in range(training.done() // steps, epochs):
        sums = tf.zeros([2])
        left = (epoch + 1) * steps - training.done()  # fewer after a checkpoint with other steps per epoch
        for _ in range(left):
            sums += training.step(*next(batches))
            begin = begin or time.monotonic()  # the first step is mostly compilation
        loss, accuracy = (float(value) / left for value in sums)
        say("epoch", epoch=epoch + 1, loss=loss, accuracy=accuracy, seconds=round(time.monotonic() - begin, 3))
        if files:
            files.save(epoch + 1, loss, accuracy)

    took = time.monotonic() - begin if begin else 0.0
    quality = {"loss": loss, "accuracy": training.evaluate(), "checksum": training.checksum()}
    if files:
        files.finish()
    else:
        say("trained", step=training.done(), **quality, seconds=round(took, 3))
    # The end of worker 0 ends the others: not before they have said that, nor before the model is saved.
    training.share()
    if files:
        say("trained", step=training.done(), **quality, seconds=round(took, 3))


if __name__ == "__main__":
    main()
