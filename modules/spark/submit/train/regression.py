"""Predicts the fare of a ride: XGBoost on Spark, on rows with the columns of New York's yellow taxis."""

from pyspark.sql import functions as F
from xgboost.spark import SparkXGBRegressor

import data
import training

LABEL = "fare_amount"


def main():
    job = training.Job("regression")
    rows, unseen = job.frames(data.taxi)
    model = job.train(SparkXGBRegressor(features_col=data.TAXI, label_col=LABEL, **job.settings()), rows)
    error = F.col(LABEL) - F.col("prediction")
    mean = model.transform(unseen).agg(F.sqrt(F.avg(error * error)), F.stddev(LABEL)).first()
    job.end(rmse=round(mean[0], 4), deviation=round(mean[1], 4))


if __name__ == "__main__":
    main()
