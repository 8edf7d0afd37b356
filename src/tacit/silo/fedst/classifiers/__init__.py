"""Classifiers trained over shares on the transformed series: forest, logistic and ridge."""
