"""Asynchronous between-graph replication with tf.compat.v1 servers, as in B. Krasuski's experiments of 2020.

PS_HOSTS, WORKER_HOSTS, JOB_NAME and TASK_INDEX describe the members; BATCH_SIZE, LEARNING_RATE, HIDDEN_UNITS and
TRAIN_STEPS (0: no end) control the training; LOG_DIR is the folder for checkpoints and summaries, written every
SAVE_EVERY seconds. The log is JSON lines, one every SAY_EVERY seconds. A worker whose step takes longer than
STALL_TIMEOUT seconds exits with 1, to start again.
"""

import faulthandler
import json
import os
import time

import tensorflow.compat.v1 as tf

import data

EVALUATED = 2000


def say(**fields):
    # In a single write: libraries write to the same log.
    print(json.dumps(fields) + "\n", end="", flush=True)


def dense(name, inputs, units, activation=None):
    fan_in = int(inputs.shape[1])
    begin = tf.truncated_normal_initializer(stddev=fan_in**-0.5)
    kernel = tf.get_variable(name + "/kernel", [fan_in, units], initializer=begin)
    bias = tf.get_variable(name + "/bias", [units], initializer=tf.zeros_initializer())
    outputs = tf.matmul(inputs, kernel) + bias
    return activation(outputs) if activation else outputs


def model(images, hidden_units):
    with tf.variable_scope("model", reuse=tf.AUTO_REUSE):
        return dense("logits", dense("hidden", images, hidden_units, tf.nn.relu), data.CLASSES)


class Log(tf.train.SessionRunHook):
    """Logs at intervals the total number of steps of all workers, and at the end the accuracy of the model."""

    def __init__(self, worker, loss, accuracy):
        self.worker, self.loss, self.accuracy = worker, loss, accuracy
        self.every = float(os.environ.get("SAY_EVERY", "1"))
        self.first = self.next = None  # the times of the first step, and of the next line

    def before_run(self, _):
        if self.next is None or time.time() >= self.next:
            return tf.train.SessionRunArgs([tf.train.get_global_step(), self.loss])

    def after_run(self, _, values):
        if values.results:
            now = time.time()
            step, loss = values.results
            say(step=int(step), loss=round(float(loss), 4), worker=self.worker, time=round(now, 2))
            self.first = self.first or now
            self.next = max(self.next or now, now - self.every) + self.every

    def end(self, session):
        now = time.time()
        step, accuracy = session.run([tf.train.get_global_step(), self.accuracy])
        seconds = round(now - (self.first or now), 1)
        say(
            step=int(step), accuracy=round(float(accuracy), 4), examples=EVALUATED, seconds=seconds,
            worker=self.worker, time=round(now, 2),
        )


class Watchdog(tf.train.SessionRunHook):
    """Ends a worker that waits for a host without power: its kernel sends nothing, and TensorFlow may wait for minutes.
    TensorFlow's own time limits don't apply to remote calls."""

    def __init__(self):
        self.timeout = float(os.environ.get("STALL_TIMEOUT", "300"))
        self.armed = 0

    def before_run(self, _):
        now = time.monotonic()
        if now >= self.armed + min(1, self.timeout / 10):
            faulthandler.dump_traceback_later(self.timeout, exit=True)
            self.armed = now

    def end(self, _):
        faulthandler.cancel_dump_traceback_later()


class Joining(tf.train.SessionCreator):
    """Lets a worker join soon after the chief has set the variables: TensorFlow's own checks only every 30 seconds."""

    def __init__(self, master, config):
        self.scaffold, self.master, self.config = tf.train.Scaffold(), master, config

    def create_session(self):
        scaffold = self.scaffold.finalize()
        manager = tf.train.SessionManager(
            local_init_op=scaffold.local_init_op,
            ready_op=scaffold.ready_op,
            ready_for_local_init_op=scaffold.ready_for_local_init_op,
            graph=tf.get_default_graph(),
            recovery_wait_secs=0.5,
        )
        return manager.wait_for_session(self.master, config=self.config, max_wait_secs=float("inf"))


def open_session(server, chief, hooks, config):
    if not chief:
        return tf.train.MonitoredSession(session_creator=Joining(server.target, config), hooks=hooks)
    return tf.train.MonitoredTrainingSession(
        master=server.target,
        checkpoint_dir=os.environ.get("LOG_DIR"),
        hooks=hooks,
        save_checkpoint_secs=float(os.environ.get("SAVE_EVERY", "30")),
        config=config,
    )


def train(server, cluster, index):
    batch_size = int(os.environ["BATCH_SIZE"])
    hidden_units = int(os.environ["HIDDEN_UNITS"])
    train_steps = int(os.environ["TRAIN_STEPS"])

    # The variables are placed on the parameter servers in turn; everything else is computed here.
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{index}")):
        step = tf.train.get_or_create_global_step()
        turn = tf.placeholder(tf.int32, [])
        images, labels = data.batch([index + 1, turn], batch_size)
        logits = model(images, hidden_units)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        tf.summary.scalar("loss", loss)
        update = tf.train.AdamOptimizer(float(os.environ["LEARNING_RATE"])).minimize(loss, global_step=step)

        images, labels = data.batch([0, 0], EVALUATED)
        guesses = tf.argmax(model(images, hidden_units), 1, output_type=tf.int32)
        accuracy = tf.reduce_mean(tf.cast(tf.equal(guesses, labels), tf.float32))

    hooks = [Log(index, loss, accuracy), Watchdog()]
    if train_steps > 0:
        hooks.append(tf.train.StopAtStepHook(last_step=train_steps))
    # A worker needs the parameter servers, but doesn't wait for other workers.
    config = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{index}"])

    taken = 0
    with open_session(server, index == 0, hooks, config) as session:
        while not session.should_stop():
            session.run(update, {turn: taken})
            taken += 1


def main():
    tf.disable_v2_behavior()
    job, index = os.environ["JOB_NAME"], int(os.environ["TASK_INDEX"])
    addresses = {"ps": os.environ["PS_HOSTS"].split(","), "worker": os.environ["WORKER_HOSTS"].split(",")}
    cluster = tf.train.ClusterSpec(addresses)
    server = tf.train.Server(cluster, job_name=job, task_index=index)
    if job == "ps":
        server.join()  # never returns
    train(server, cluster, index)


if __name__ == "__main__":
    main()
