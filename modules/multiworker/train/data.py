"""Images of ten classes, 28 by 28, generated from a seed: the same everywhere, without a download."""

import tensorflow as tf

PIXELS = 784
CLASSES = 10

# Each class has several looks, so that a single layer can't separate the classes. An image is a look with noise.
_LOOKS = 4
_NOISE = 1.0


def batch(seed, size):
    """Returns images and labels for a seed of two integers. Other seeds give other images of the same classes."""
    looks = tf.random.stateless_uniform([CLASSES * _LOOKS, PIXELS], [2020, 0], -0.5, 0.5)
    seeds = tf.cast(tf.random.experimental.stateless_split(seed, 2), tf.int32)
    which = tf.random.stateless_uniform([size], seeds[0], maxval=CLASSES * _LOOKS, dtype=tf.int32)
    noise = tf.random.stateless_normal([size, PIXELS], seeds[1], stddev=_NOISE)
    return tf.gather(looks, which) + noise, which % CLASSES
