"""Predicts which loans will be in arrears: XGBoost on Spark, on rows with the columns of Fannie Mae's loans."""

from pyspark.ml.evaluation import BinaryClassificationEvaluator
from pyspark.sql import functions as F
from xgboost.spark import SparkXGBClassifier

import data
import training

LABEL = "delinquency_12"


def main():
    job = training.Job("classification")
    rows, unseen = job.frames(data.mortgage)
    model = job.train(SparkXGBClassifier(features_col=data.MORTGAGE, label_col=LABEL, **job.settings()), rows)
    judged = model.transform(unseen).select(LABEL, "prediction", "rawPrediction").persist()
    auc = BinaryClassificationEvaluator(labelCol=LABEL).evaluate(judged)
    accuracy = judged.agg(F.avg((F.col(LABEL) == F.col("prediction")).cast("double"))).first()[0]
    job.end(accuracy=round(accuracy, 4), auc=round(auc, 4))


if __name__ == "__main__":
    main()
